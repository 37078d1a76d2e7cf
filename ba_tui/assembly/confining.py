"""The sandbox of one conversation out of the settings, and what it takes to run outside it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ba_tui.core.profiles import Profile
from ba_tui.core.results import ToolResult, failure
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.permissions.egress.domains import domain_of
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.rules.rulebook import NETWORK
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.sandbox.layout import FileReach
from ba_tui.permissions.sandbox.pending_changes import PendingChanges
from ba_tui.permissions.sandbox.protected_watch import ProtectedWatch
from ba_tui.permissions.verdicts import Allow, Ask, Deny, JudgedCall, Judgement, judged_call
from ba_tui.processes.limits import GIGABYTE, ProcessLimits
from ba_tui.resources import Places, user_home
from ba_tui.settings import Settings
from ba_tui.tools.running.command_runner import CommandRunner
from ba_tui.tools.running.protected_review import ProtectedReview

if TYPE_CHECKING:
    from ba_tui.tools.running.egress_hosts import NetworkAccess
    from ba_tui.tools.web.addresses import WebAddress

ConfinementReport: TypeAlias = tuple[Literal["ok", "warn", "fail"], str, str]
"""One line for the doctor: how it is, in words, and what would mend it."""
CURES = {
    "required": "Install bubblewrap (its program is bwrap); until then commands are refused.",
    "auto": "Install bubblewrap (its program is bwrap); until then every command that no rule allows asks.",
}
FORBIDDEN = "The system forbids name spaces: its own package bubblewrap often may make them all the same."
BROKEN = "Please report it, with your kernel and distribution; until then set sandbox to off, so that commands ask."
SHORT_LIST = "nothing can hold commands to reading here: of those only a short list of plain readers runs unasked"
HOLDS = {
    "reading": "writes nothing, sees no secrets, no network and no settings of yours",
    "working": "writes the workspace but no protected files, sees no secrets, no network and no settings of yours",
}
ROOT = "; as root it changes no kernel settings, makes no setuid files and starts no more processes than allowed"
UNLISTED = "No rule lets commands in the sandbox reach it."
NETWORKED = "It would run with the network."


def sandbox_for(settings: Settings, where: Places, workspace: Workspace) -> Sandbox:
    """Nothing is looked for yet; that happens at the first command."""
    commands = settings.commands
    reach = FileReach(
        (workspace.root, *workspace.extra),
        commands.write,
        (*commands.read, *(lent.folder for lent in workspace.lent)),
        tuple(dict.fromkeys((where.config, where.data, where.cache, where.state))),
        network=commands.network,
        home=user_home(),
        started=workspace.started,
    )
    return Sandbox(reach, settings.sandbox)


def sandbox_report(settings: Settings, where: Places) -> list[ConfinementReport]:
    """For the doctor: how well commands are confined here, tried out, and what would mend it."""
    if settings.sandbox == "off":
        return [("warn", "off by the settings: commands run with all your rights", "ba config set sandbox auto")]
    sandbox = sandbox_for(settings, where, Workspace(Path(tempfile.gettempdir())))
    found = sandbox.found
    troubles = "; ".join(found.troubles)
    forbidden = any(word in troubles.lower() for word in ("uid map", "namespace", "not permitted", "denied"))
    if found.mechanism is None:
        why = f": {troubles}" if troubles else ""
        fix = FORBIDDEN if forbidden else CURES[settings.sandbox]
        state = "fail" if settings.sandbox == "required" else "warn"
        return [(state, f"nothing confines commands here{why}", fix), ("warn", SHORT_LIST, fix)]
    closed = "off, but for hosts that you allow" if found.mechanism.walled else "off"
    network = "on" if settings.commands.network else closed
    text = f"{found.mechanism.name} confines commands ({found.mechanism.guards}); their network is {network}"
    weak = not found.mechanism.separate and sys.platform == "linux"
    fix = (FORBIDDEN if forbidden else CURES["auto"]) if weak else ""
    first: ConfinementReport = (
        "warn" if weak else "ok",
        f"{text}; {troubles or 'there is no bubblewrap'}" if weak else text,
        fix,
    )
    return [first, *_tried(sandbox, fix)]


def _tried(sandbox: Sandbox, fix: str) -> Iterator[ConfinementReport]:
    """What came of trying each profile."""
    from ba_tui.assembly.sandbox_trial import try_out  # noqa: PLC0415 - for the doctor alone

    trials = try_out(sandbox)
    if all(trial.profile != "reading" for trial in trials):
        yield "warn", SHORT_LIST, fix
    for trial in trials:
        if trial.trouble:
            yield "fail", f"the profile {trial.profile} could not be tried: {trial.trouble}", fix or BROKEN
        elif trial.broken:
            state = "warn" if fix else "fail"
            yield (
                state,
                f"the profile {trial.profile} was tried and does not hold: it {', '.join(trial.broken)}",
                fix or BROKEN,
            )
        else:
            more = ROOT if os.geteuid() == 0 else ""
            yield "ok", f"the profile {trial.profile} was tried and holds: {HOLDS[trial.profile]}{more}", ""


def limits_for(settings: Settings) -> ProcessLimits:
    given = settings.commands
    memory, size = int(given.memory_gb * GIGABYTE), int(given.file_size_gb * GIGABYTE)
    return ProcessLimits(memory or None, size or None, given.processes or None)


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
        return Ask(f"Port {address.port} is not one of the web's.", None, ("network",))
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


def runner_for(settings: Settings, kept: PendingChanges, policy: Policy, sandbox: Sandbox) -> CommandRunner:
    """What runs the commands of one conversation; ``kept`` holds changes that wait for a decision."""
    watch = ProtectedWatch(sandbox.scan, kept, policy.workspace.shown)
    review = ProtectedReview(watch, lambda: policy.mode != "bypass")
    judge, network = partial(by_rule, policy), network_for(policy, settings)
    environment = with_hooks if settings.commands.git_hooks else git_variables
    return CommandRunner(sandbox, judge, network, policy.judge, review, environment)


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
