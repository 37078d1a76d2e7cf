"""Rules for commands outside their sandbox: using the network, reaching a host; and the runner of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ba_tui.core.effects import Profile
from ba_tui.core.results import ToolResult, failure
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.core.values import late
from ba_tui.permissions.answers import NETWORK
from ba_tui.permissions.conditions import domain_of
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.sandbox.git_settings import git_environment
from ba_tui.permissions.session import SessionPermissions
from ba_tui.permissions.trust.session_writes import SessionWrites
from ba_tui.permissions.verdicts import Allow, Ask, Deny, JudgedCall, Judgement, judged_call
from ba_tui.settings import Settings
from ba_tui.skills.active import ActiveSkills, active_folders
from ba_tui.skills.content import SkillFolders
from ba_tui.tools.running.command_runner import CommandRunner, ProtectedReview

if TYPE_CHECKING:
    from ba_tui.tools.addresses import WebAddress
    from ba_tui.tools.running.egress_proxy import NetworkAccess

# Loaded with the first confined command.
network_access = late("ba_tui.tools.running.egress_proxy:network_access")

UNLISTED = "No rule lets sandboxed commands reach this host."
NETWORKED = "It would run with network access."


def by_rule(policy: Policy, request: JudgedCall) -> Judgement:
    """Judge a program with network access: a rule may allow it, but not a mode that relies on the sandbox."""
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
    """Judge whether a confined command may reach ``address``. A mode that relies on the sandbox does not allow it,
    so the user is asked; the user is also asked about unusual ports, even if a rule allows the host."""
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
    """Return the network access of commands whose network is off."""

    judge, reachable = partial(judge_host, policy), settings.web.allow_private
    return lambda: network_access(judge, policy.remember, reachable)


def runner_for(
    settings: Settings, permissions: SessionPermissions, skills: SkillFolders, writes: SessionWrites
) -> CommandRunner:
    """Return the runner for a conversation's commands; ``writes`` records what they write."""
    policy = permissions.policy
    review = ProtectedReview(permissions.watch(), lambda: policy.mode != "bypass", writes.accept)
    judge, network = partial(by_rule, policy), network_for(policy, settings)
    environment = with_hooks if settings.commands.git_hooks else git_variables
    return CommandRunner(permissions.sandbox, judge, network, policy.judge, review, environment, skills, writes)


def session_runner(
    settings: Settings, permissions: SessionPermissions, skills: ActiveSkills, writes: SessionWrites
) -> CommandRunner:
    """Return the runner for a conversation with ``skills``."""
    return runner_for(settings, permissions, SkillFolders(partial(active_folders, skills)), writes)


def git_variables(
    folder: Path, text: str, profile: Profile, inherited: Mapping[str, str], held: bool
) -> Mapping[str, str]:
    """Return variables for git; see ``git_settings``."""
    return git_environment(folder, text, profile, inherited, held=held)


def with_hooks(
    folder: Path, text: str, profile: Profile, inherited: Mapping[str, str], held: bool
) -> Mapping[str, str]:
    """As ``git_variables``, but repository hooks may run, except in reading commands."""
    return git_variables(folder, text, replace(profile, git=False), inherited, held)
