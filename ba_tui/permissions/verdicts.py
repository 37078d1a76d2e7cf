"""What a policy is asked about a call, what it answers, and the limits that it applies besides its rules.

``policy`` decides the verdicts.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ba_tui.core.effects import UNLIMITED, WORKING, AgentCeiling, Profile, ProfileStep
from ba_tui.core.errors import UsageError
from ba_tui.core.events import MAIN, Mode
from ba_tui.core.questions import Risk
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.conditions import OnTimeout
from ba_tui.resources import UserFolders


@frozen
class JudgedCall:
    """A call that a policy judges.

    ``cwd``: the folder in which a command would run; paths in arguments are relative to the root. ``agent`` makes the
    call, within its ``ceiling``. ``tried``: what the call tried to write when it ran with read-only rights.
    """

    tool: Tool
    args: Mapping[str, Any]
    cwd: Path
    agent: str = MAIN
    ceiling: AgentCeiling = UNLIMITED
    tried: str = ""


def judged_call(tool: Tool, args: Mapping[str, Any], cwd: Path, call: Call) -> JudgedCall:
    """Return the call to judge when the agent of ``call`` uses ``tool``."""
    return JudgedCall(tool, args, cwd, call.branch.name, call.branch.ceiling)


@frozen
class Allow:
    """The call runs. ``by``: the rule that allowed it; empty if the mode did."""

    by: str = ""
    profile: Profile = WORKING
    """How the command is confined; ignored for calls that run nothing."""
    steps: tuple[ProfileStep, ...] = ()
    """The commands of a list, if each runs separately; empty if all run together."""


@frozen
class Deny:
    """The call is refused. Both the model and the user read ``reason``."""

    reason: str
    by: str = ""
    malformed: bool = False
    """The arguments are invalid; no rule was violated."""
    hint: str = ""


@frozen
class Ask:
    """The user is asked. ``rule``: the narrowest rules to offer, one per line; None if none should be remembered.
    ``session_rule``: the rules to offer for the session, if different. ``on_timeout`` applies after ``timeout``
    seconds; without a timeout the question waits."""

    reason: str
    rule: str | None
    risks: tuple[Risk, ...] = ()
    by: str = ""
    timeout: float | None = None
    on_timeout: OnTimeout = "deny"
    profile: Profile = WORKING
    """How the command is confined if the user allows it."""
    session_rule: str | None = None


Judgement: TypeAlias = Allow | Deny | Ask


def as_reader(verdict: Judgement) -> Judgement:
    """Return ``verdict`` for an agent that may only read: commands are confined to reading."""
    if isinstance(verdict, Deny):
        return verdict
    if isinstance(verdict, Ask):
        return replace(verdict, profile=_reading(verdict.profile))
    steps = tuple(replace(step, profile=_reading(step.profile)) for step in verdict.steps)
    return replace(verdict, profile=_reading(verdict.profile), steps=steps)


def _reading(profile: Profile) -> Profile:
    return replace(profile, name="reading", git=False, packages=False, writable=())


BoundLevel: TypeAlias = Literal["restricted", "default", "admin"]
MODES: tuple[Mode, ...] = ("default", "accept-edits", "plan", "auto")
BYPASS: Mode = "bypass"
SEARCH = "web_search"
PLAN = (
    "Plan mode only reads: nothing is changed or run. Read what you need, then present the plan; "
    "the user decides whether it is carried out."
)
PLANNED = {
    "mcp": "Plan mode calls no tool of an MCP server, since only the server itself claims that it just reads. "
    "Read what you need by other means, then present the plan; the user decides whether it is carried out."
}
"""Plan mode's refusal by tool category; ``PLAN`` for all other tools."""
RESTRICTED = "Only reading is allowed here: nothing is changed or run, and nothing is fetched."
_CONTAINED = regex(r"docker|kubepods|containerd|libpod|lxc|garden|actions_job")


def _never() -> bool:
    return False


def _unknown() -> str:
    return "no sandbox is known"


def _no_reason(tool: Tool, args: Mapping[str, Any]) -> str:
    return ""


UnnamedHosts: TypeAlias = Callable[..., str]
"""Returns why a call that contacts a host asks in mode auto; see ``Egress.unnamed`` for its parameters."""


def _no_host(tool: Tool, args: Mapping[str, Any], *, held: bool) -> str:
    return ""


@frozen
class Bounds:
    """Limits and facts that a policy applies besides its rules.

    - ``own``: ba's folders, which only the user may change
    - ``restricted``: why only reading is allowed; empty if more is
    - ``bypass``: mode bypass was requested at the start
    - ``confined``: whether a sandbox confines allowed commands; ``walled``: whether it has no network access
    - ``unheld``: why read-only commands can't be confined; empty if they can
    - ``suspicion``: why a call asks even if rules and mode allow it; ``unnamed``: the same in mode auto
    - ``timeout``: seconds to wait for an answer if no rule sets a time
    - ``hits``: the file of rule hit counts
    """

    own: UserFolders | None = None
    restricted: str = ""
    bypass: bool = False
    confined: Callable[[], bool] = _never
    unheld: Callable[[], str] = _unknown
    walled: Callable[[], bool] = _never
    suspicion: Callable[[Tool, Mapping[str, Any]], str] = _no_reason
    unnamed: UnnamedHosts = _no_host
    timeout: float | None = None
    hits: Path | None = None
    quiet: float = 0.8
    """Seconds for which a new mode must last before it answers waiting questions."""

    def modes(self) -> tuple[Mode, ...]:
        """Return the modes that can be chosen, in the order in which a key cycles through them."""
        if self.restricted:
            return ("default", "plan")
        return (*MODES, BYPASS) if self.bypass else MODES

    def leak(self, mode: Mode, tool: Tool, args: Mapping[str, Any], rule: str) -> str:
        """Return why a call may send data away; empty if nothing indicates it.

        ``rule``: the tool of the rule that allows the call. A rule for web search implies its search engine.
        """
        why = self.suspicion(tool, args)
        if why or mode != "auto" or rule == tool.name == SEARCH:
            return why
        return self.unnamed(tool, args, held=self.walled())


def check_bypass(confirmed: bool, env: Mapping[str, str] | None = None, root: Path = Path("/")) -> None:
    """Refuse mode bypass for root outside a container unless the user confirmed it.

    Raises:
        UsageError: the process runs as root on the machine itself, without confirmation.
    """
    if confirmed or os.geteuid() != 0 or contained(os.environ if env is None else env, root):
        return
    raise UsageError(
        "Mode bypass as root could change anything on this machine without asking.",
        "Start ba as another user or in a container, or add --yes-bypass-as-root.",
    )


def contained(env: Mapping[str, str], root: Path = Path("/")) -> bool:
    """Return whether the process seems to run in a container."""
    if env.get("container") or env.get("KUBERNETES_SERVICE_HOST"):
        return True
    if any((root / name).exists() for name in (".dockerenv", "run/.containerenv")):
        return True
    with suppress(OSError):
        return bool(_CONTAINED.search((root / "proc/1/cgroup").read_text(errors="replace")))
    return False


class ModeChanges:
    """Wakes waiting questions when the mode changes.

    ``quiet``: seconds without a further change, so that a mode which the user only cycles past answers nothing.
    """

    def __init__(self, quiet: float) -> None:
        self._quiet = quiet
        self._waiting: set[asyncio.Future[None]] = set()

    def tell(self) -> None:
        """Wake all waiters. Call it on their event loop."""
        waiting, self._waiting = self._waiting, set()
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def settled(self) -> None:
        """Return once the mode has changed and stayed the same for ``quiet`` seconds."""
        await self._next()
        while True:
            try:
                async with asyncio.timeout(self._quiet):
                    await self._next()
            except TimeoutError:
                return

    async def _next(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            await future
        finally:
            self._waiting.discard(future)
