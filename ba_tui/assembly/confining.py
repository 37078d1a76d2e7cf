"""The sandbox of one conversation out of the settings, and what it takes to run outside it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ba_tui.core.results import ToolResult, failure
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.permissions.hosts import domain_of
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.rulebook import NETWORK
from ba_tui.permissions.sandbox import Sandbox
from ba_tui.permissions.sandbox_layout import Reach
from ba_tui.permissions.verdicts import Allow, Ask, Deny
from ba_tui.resources import Places, user_home
from ba_tui.settings import Settings
from ba_tui.tools.limits import GIGABYTE, Limits

if TYPE_CHECKING:
    from ba_tui.tools.egress_hosts import Network
    from ba_tui.tools.web_addresses import WebAddress

CURES = {
    "required": "Install bubblewrap (its program is bwrap); until then commands are refused.",
    "auto": "Install bubblewrap (its program is bwrap); until then every command that no rule allows asks.",
}
FORBIDDEN = "The system forbids name spaces: its own package bubblewrap often may make them all the same."
UNLISTED = "No rule lets commands in the sandbox reach it."
OUTSIDE = "It would run outside the sandbox."


def sandbox_for(settings: Settings, where: Places, workspace: Workspace) -> Sandbox:
    """Nothing is looked for yet; that happens at the first command."""
    commands = settings.commands
    reach = Reach(
        (workspace.root, *workspace.extra),
        commands.write,
        (*commands.read, *(lent.folder for lent in workspace.lent)),
        tuple(dict.fromkeys((where.config, where.data, where.cache, where.state))),
        network=commands.network,
        home=user_home(),
    )
    return Sandbox(reach, settings.sandbox)


def sandbox_report(settings: Settings) -> tuple[Literal["ok", "warn", "fail"], str, str]:
    """For the doctor: how well commands are confined here, in words, and what would mend it."""
    if settings.sandbox == "off":
        return "warn", "off by the settings: commands run with all your rights", "ba config set sandbox auto"
    found = Sandbox(Reach(()), settings.sandbox).found
    troubles = "; ".join(found.troubles)
    forbidden = any(word in troubles.lower() for word in ("uid map", "namespace", "not permitted", "denied"))
    if found.mechanism is None:
        why = f": {troubles}" if troubles else ""
        fix = FORBIDDEN if forbidden else CURES[settings.sandbox]
        return "fail" if settings.sandbox == "required" else "warn", f"nothing confines commands here{why}", fix
    closed = "off, but for hosts that you allow" if found.mechanism.walled else "off"
    network = "on" if settings.commands.network else closed
    text = f"{found.mechanism.name} confines commands ({found.mechanism.guards}); their network is {network}"
    if not found.mechanism.separate and sys.platform == "linux":
        return "warn", f"{text}; {troubles or 'there is no bubblewrap'}", FORBIDDEN if forbidden else CURES["auto"]
    return "ok", text, ""


def limits_for(settings: Settings) -> Limits:
    given = settings.commands
    memory, size = int(given.memory_gb * GIGABYTE), int(given.file_size_gb * GIGABYTE)
    return Limits(memory or None, size or None, given.processes or None)


def leaving(policy: Policy, tool: Tool, args: Mapping[str, Any], folder: Path) -> Allow | Deny | Ask:
    """Whether a call may run outside: a rule that allows it means that, a mode that counts on the sandbox does not."""
    verdict = policy.judge(tool, args, folder)
    if isinstance(verdict, Allow) and not verdict.by and policy.mode != "bypass":
        return Ask(OUTSIDE, None, ("runs a command",))
    return verdict


async def _only_judged(args: Mapping[str, Any], call: Call) -> ToolResult:
    return failure("not_found", "Hosts are reached by commands, not by a tool.")


REACHING = Tool(
    NETWORK, "What a confined command reaches.", {}, _only_judged, Effect.NETWORK, facts=ToolFacts(target="url")
)


def judge_host(policy: Policy, address: WebAddress) -> Allow | Deny | Ask:
    """Whether a confined command may reach ``address``: a mode that allows it counts on the sandbox, so the person is
    asked; as they are about ports that the web does not use, whatever a rule says of the host."""
    verdict = policy.judge(REACHING, {"url": f"{address.origin}/"}, policy.workspace.root)
    if policy.mode == "bypass" or isinstance(verdict, Deny):
        return verdict
    if address.port not in (80, 443):
        return Ask(f"Port {address.port} is not one of the web's.", None, ("network",))
    if isinstance(verdict, Ask) or verdict.by:
        return verdict
    return Ask(UNLISTED, f"{NETWORK}({domain_of(address.origin)})", ("network",))


def network_for(policy: Policy, settings: Settings) -> Callable[[], Network]:
    """The hosts that commands may reach although their network is off."""

    def network() -> Network:
        # Only who runs a command in a network of its own needs to read addresses.
        from ba_tui.tools.egress_hosts import Network  # noqa: PLC0415
        from ba_tui.tools.web_addresses import read_reach  # noqa: PLC0415

        return Network(partial(judge_host, policy), policy.remember, read_reach(settings.web.allow_private))

    return network


def judge_of(policy: Policy) -> partial[Allow | Deny | Ask]:
    return partial(leaving, policy)
