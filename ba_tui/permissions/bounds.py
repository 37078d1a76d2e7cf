"""What holds for a policy beside its rules: how far a caller may go, which modes there are, what else is known.

The verdicts that follow are given in ``policy``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Mode
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.resources import Places

BoundLevel: TypeAlias = Literal["restricted", "default", "admin"]
MODES: tuple[Mode, ...] = ("default", "accept-edits", "plan", "auto")
BYPASS: Mode = "bypass"
SEARCH = "web_search"
PLAN = (
    "Plan mode only reads: nothing is changed or run. Read what you need, then present the plan; "
    "the user decides whether it is carried out."
)
PLANNED = {
    "mcp": "Plan mode calls no tool of an MCP server: that one only reads is its server's word alone. "
    "Read what you need by other means, then present the plan; the user decides whether it is carried out."
}
"""What plan mode says of tools, by their category; PLAN of all others."""
RESTRICTED = "Only reading is allowed here: nothing is changed or run, and nothing is fetched."
_CONTAINED = regex(r"docker|kubepods|containerd|libpod|lxc|garden|actions_job")


def _never() -> bool:
    return False


def _unknown() -> str:
    return "no sandbox is known"


def _no_reason(tool: Tool, args: Mapping[str, Any]) -> str:
    return ""


class UnnamedHosts(Protocol):
    """Says why a call that contacts a host should ask in mode auto; see ``egress.detection``."""

    def __call__(self, tool: Tool, args: Mapping[str, Any], *, held: bool) -> str: ...


def _no_host(tool: Tool, args: Mapping[str, Any], *, held: bool) -> str:
    return ""


@frozen
class Bounds:
    """``own``: ba's folders, which only the person changes. ``restricted``: why only reading is allowed, empty when
    more is. ``bypass``: that mode was asked for at the start. ``confined``: whether a sandbox holds what is allowed;
    ``unheld``: why none holds what only reads, empty when one does.
    ``walled``: whether it has no network there either.
    ``suspicion``: why a call should ask that neither rule nor mode asks about; ``unnamed``: the same in mode auto.
    ``timeout``: seconds to wait for answers where no rule says how long. ``hits``: the file that counts how often rules
    decided."""

    own: Places | None = None
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
    """Seconds that a new mode must stand before it answers questions that wait."""

    def modes(self) -> tuple[Mode, ...]:
        """Those that can be chosen, in the order that a key goes through them."""
        if self.restricted:
            return ("default", "plan")
        return (*MODES, BYPASS) if self.bypass else MODES

    def leak(self, mode: Mode, tool: Tool, args: Mapping[str, Any], rule: str) -> str:
        """Return why a call may carry data away, empty when nothing says so. ``rule``: the tool that a rule allows it
        by; one for the search of the web names the search engine."""
        why = self.suspicion(tool, args)
        if why or mode != "auto" or rule == tool.name == SEARCH:
            return why
        return self.unnamed(tool, args, held=self.walled())


def check_bypass(confirmed: bool, env: Mapping[str, str] | None = None, root: Path = Path("/")) -> None:
    """Refuse mode bypass where one wrong command could end a machine, unless the person said so.

    Raises:
        UsageError: we are root and in no container, and that was not confirmed.
    """
    if confirmed or os.geteuid() != 0 or contained(os.environ if env is None else env, root):
        return
    raise UsageError(
        "Mode bypass as root could change anything on this machine without asking.",
        "Start ba as another user or in a container, or add --yes-bypass-as-root.",
    )


def contained(env: Mapping[str, str], root: Path = Path("/")) -> bool:
    """Whether this looks like the inside of a container."""
    if env.get("container") or env.get("KUBERNETES_SERVICE_HOST"):
        return True
    if any((root / name).exists() for name in (".dockerenv", "run/.containerenv")):
        return True
    with suppress(OSError):
        return bool(_CONTAINED.search((root / "proc/1/cgroup").read_text(errors="replace")))
    return False
