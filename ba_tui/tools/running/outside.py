"""What commands may do outside their sandbox: run with the network, reach a host. And the runner that asks so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ba_tui.core.profiles import Profile
from ba_tui.core.results import ToolResult, failure
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.permissions.egress.domains import domain_of
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.rules.rulebook import NETWORK
from ba_tui.permissions.session import SessionPermissions
from ba_tui.permissions.trust.session_writes import SessionWrites
from ba_tui.permissions.verdicts import Allow, Ask, Deny, JudgedCall, Judgement, judged_call
from ba_tui.settings import Settings
from ba_tui.skills.folders import SkillFolders
from ba_tui.tools.running.command_runner import CommandRunner
from ba_tui.tools.running.protected_review import ProtectedReview

if TYPE_CHECKING:
    from ba_tui.tools.running.egress_hosts import NetworkAccess
    from ba_tui.tools.web.addresses import WebAddress

UNLISTED = "No rule lets sandboxed commands reach this host."
NETWORKED = "It would run with network access."


def by_rule(policy: Policy, request: JudgedCall) -> Judgement:
    """Whether something may run that has the network: a rule may say so, a mode that counts on the sandbox does not."""
    verdict = policy.judge(request)
    if isinstance(verdict, Allow) and not verdict.by and policy.mode != "bypass":
        return Ask(NETWORKED, None, ("runs a command", "network"))
    return verdict


async def _only_judged(args: Mapping[str, Any], call: Call) -> ToolResult:
    return failure("not_found", "Hosts are reached by commands, not by a tool.")


REACHING = Tool(
    NETWORK, "What a confined command reaches.", {}, _only_judged, Effect.NETWORK, facts=ToolFacts(target="url")
)


def judge_host(policy: Policy, address: WebAddress, call: Call) -> Judgement:
    """Whether a confined command may reach ``address``: a mode that allows it counts on the sandbox, so the person is
    asked; as they are about ports that the web does not use, whatever a rule says of the host."""
    request = judged_call(REACHING, {"url": f"{address.origin}/"}, policy.workspace.root, call)
    verdict = policy.judge(replace(request, ceiling=request.ceiling.of_any_tool()))
    if policy.mode == "bypass" or isinstance(verdict, Deny):
        return verdict
    if address.port not in (80, 443):
        return Ask(f"Port {address.port} is not a web port (80 or 443).", None, ("network",))
    if isinstance(verdict, Ask) or verdict.by:
        return verdict
    return Ask(UNLISTED, f"{NETWORK}({domain_of(address.origin)})", ("network",))


def network_for(policy: Policy, settings: Settings) -> Callable[[], NetworkAccess]:
    """The hosts that commands may reach although their network is off."""

    def network() -> NetworkAccess:
        # Only who runs a command in a network of its own needs to read addresses.
        from ba_tui.tools.running.egress_hosts import NetworkAccess  # noqa: PLC0415
        from ba_tui.tools.web.addresses import read_reach  # noqa: PLC0415

        return NetworkAccess(partial(judge_host, policy), policy.remember, read_reach(settings.web.allow_private))

    return network


def runner_for(
    settings: Settings, permissions: SessionPermissions, skills: SkillFolders, writes: SessionWrites
) -> CommandRunner:
    """What runs the commands of one conversation; ``writes`` lists what they write."""
    policy = permissions.policy
    review = ProtectedReview(permissions.watch, lambda: policy.mode != "bypass", writes.accept)
    judge, network = partial(by_rule, policy), network_for(policy, settings)
    environment = with_hooks if settings.commands.git_hooks else git_variables
    return CommandRunner(permissions.sandbox, judge, network, policy.judge, review, environment, skills, writes)


def git_variables(
    folder: Path, text: str, profile: Profile, inherited: Mapping[str, str], *, held: bool
) -> Mapping[str, str]:
    """See ``permissions.git_safety``; which is loaded when a command runs."""
    from ba_tui.permissions.sandbox.git_settings import git_environment  # noqa: PLC0415

    return git_environment(folder, text, profile, inherited, held=held)


def with_hooks(
    folder: Path, text: str, profile: Profile, inherited: Mapping[str, str], *, held: bool
) -> Mapping[str, str]:
    """The same where the person lets git run a repository's hooks; what only reads runs none."""
    return git_variables(folder, text, replace(profile, git=False), inherited, held=held)
