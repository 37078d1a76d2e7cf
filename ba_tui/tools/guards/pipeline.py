"""The guards of every tool of a conversation in their order, and the state that they share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import field
from functools import partial
from pathlib import Path

from ba_tui.core.tool import Effect, Guard, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.secrets.sharing import SecretSharing
from ba_tui.tools.guards.output import NOWHERE, OutputDelivery, output, secrets
from ba_tui.tools.guards.permission import CallJudge, PermissionGate, Remember, Settle, never, settled
from ba_tui.tools.guards.reliability import Breakers, breaker, retry, timeout
from ba_tui.tools.guards.repeats import CallMemory, once, repeats
from ba_tui.tools.guards.validate import validate
from ba_tui.tools.running.shell_program import started_in
from ba_tui.tools.toolbox import SessionPlace


@frozen
class HookGuards:
    """The guards for hooks ``before`` a call is judged, and ``after`` its result is final. hooks.py makes them; it
    loads only if there are hooks."""

    before: Guard
    after: Guard


def unhooked(tool: Tool) -> Tool:
    """Return ``tool`` unchanged: the guard without hooks."""
    return tool


UNHOOKED = HookGuards(unhooked, unhooked)


@frozen
class SharedGuards:
    """The shared state of a conversation's guards, besides consent: cached results, failure counts, stored results,
    secrets."""

    memory: CallMemory
    health: Breakers
    delivery: OutputDelivery = NOWHERE
    sharing: SecretSharing = field(default_factory=SecretSharing)
    checkpoint: Guard | None = None
    """Saves files before the first change of a turn; None to save nothing."""
    recording: Guard | None = None
    """Records written files that run code or instruct models; None in a copy of the project."""
    settle: Settle = settled
    """Asks about protected files that commands changed, before another command runs without a question."""
    naming: Guard | None = None
    """Replaces ``@skill:ID`` in calls with full paths."""
    mode_changed: Callable[[], Awaitable[None]] = never
    """Returns when the user chose another mode, which may answer an open question."""


def pipeline(
    place: SessionPlace,
    judge: CallJudge,
    remember: Remember,
    shared: SharedGuards | None = None,
    hooks: HookGuards = UNHOOKED,
    writers: Collection[str] | None = None,
) -> Guard:
    """Return the guard of all tools of a conversation, including later ones. ``writers``: the names of its tools that
    write, which may grow; None to collect them."""
    workspace = place.workspace
    kept = shared or SharedGuards(CallMemory(workspace.resolve), Breakers())
    collected: set[str] = set()
    consent = PermissionGate(
        judge, remember, partial(started_in, workspace), workspace.shown, kept.settle, kept.mode_changed
    ).guard
    again = repeats(collected if writers is None else writers)

    def guard(tool: Tool) -> Tool:
        if tool.effect is Effect.WRITE:
            collected.add(tool.name)
        return guarded(tool, consent, again, kept, hooks)

    return guard


def guarded(
    tool: Tool, permission: Guard, repeats: Guard, shared: SharedGuards | None = None, hooks: HookGuards = UNHOOKED
) -> Tool:
    """Return ``tool`` within all guards, listed from the outermost."""
    kept = shared or SharedGuards(CallMemory(Path), Breakers())
    guards: tuple[Guard, ...] = (
        # Secrets are removed last from everything that leaves a tool, including failures and partial output.
        secrets(kept.sharing),
        # Comments of hooks are not shortened with the result.
        hooks.after,
        # Results of all guards below are shortened, once.
        partial(output, delivery=kept.delivery),
        # Repeated calls are stopped before the user is asked.
        repeats,
        # All guards below get valid arguments; those that a hook rewrites are checked again.
        validate,
        # Hooks, rules and the user see the real paths of a call.
        kept.naming or unhooked,
        # Hooks may deny or rewrite; their "allow" does not override rules, so permission comes after them.
        hooks.before,
        permission,
        # Only allowed calls are answered from the cache and counted by the breaker.
        once(kept.memory),
        breaker(kept.health),
        # Files are saved once, before the first attempt.
        kept.checkpoint or unhooked,
        # Written files that run code or instruct models are recorded until the user accepts them.
        kept.recording or unhooked,
        # Each attempt has the whole time limit; waiting for the user does not count.
        retry(),
        timeout,
    )
    for guard in reversed(guards):
        tool = guard(tool)
    return tool
