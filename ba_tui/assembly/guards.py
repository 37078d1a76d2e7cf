"""The guards of a session's tools, and the state that they share. Made at the first call of a tool."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial, reduce
from typing import TypeAlias

from ba_tui.core.tool import Guard, Tool
from ba_tui.feature import SessionContext
from ba_tui.permissions.trust.session_writes import SessionWrites
from ba_tui.skills.active import ActiveSkills, folder_named
from ba_tui.tools.builtin.skills import locating_skills
from ba_tui.tools.guards.checkpoint import RecordingGuard
from ba_tui.tools.guards.output import OutputDelivery
from ba_tui.tools.guards.permission import CallJudge, PermissionGate, within_skill
from ba_tui.tools.guards.pipeline import UNHOOKED, HookGuards, SharedGuards, own_query, own_shell, pipeline
from ba_tui.tools.guards.reliability import Breakers
from ba_tui.tools.guards.repeats import CallMemory
from ba_tui.tools.isolated_tools import IsolatedTools
from ba_tui.tools.shells import started_in
from ba_tui.tools.toolbox import SessionPlace

Judging: TypeAlias = Callable[[CallJudge], CallJudge]


class SessionGuards:
    """The guards of a session's ``tools`` in ``place``. ``judging`` wraps the permission policy; ``checkpoint`` saves
    files before they change; ``writes`` records which of them run code or instruct models."""

    def __init__(
        self,
        context: SessionContext,
        place: SessionPlace,
        tools: Sequence[Tool],
        judging: Iterable[Judging],
        checkpoint: Guard | None,
        writes: SessionWrites,
        hooks: Callable[[], HookGuards] | None,
    ) -> None:
        scope, permissions, workspace = context.scope, context.permissions, place.workspace
        policy, skills = permissions.policy, context.offered(ActiveSkills)
        self._place, self._policy, self._sharing = place, policy, permissions.sharing
        self._consent = PermissionGate(
            policy.judge, policy.remember, partial(started_in, workspace), workspace.shown
        ).guard
        self._delivery = OutputDelivery(scope.results, scope.fullness, place.secrecy)
        self._hooks = hooks() if hooks else UNHOOKED
        self.health = Breakers(tools)
        self._shared = SharedGuards(
            CallMemory(workspace.resolve),
            self.health,
            self._delivery,
            self._sharing,
            checkpoint,
            RecordingGuard(writes, workspace, permissions.sandbox.holds).guard,
            context.runner().review.settle,
            naming=locating_skills(partial(folder_named, skills)),
            mode_changed=policy.mode_changes.settled,
        )
        self._judge = reduce(lambda judge, wrap: wrap(judge), judging, within_skill(policy.judge, skills.limits))
        self.isolated = IsolatedTools(
            context.definitions, place, self._judge, policy.remember, self._shared, context.registry, self._hooks
        )

    def guard(self, writers: Collection[str]) -> Guard:
        """Return the guard of the session's own tools. ``writers``: names of those that write, which may grow."""
        return pipeline(self._place, self._judge, self._policy.remember, self._shared, self._hooks, writers)

    def own_shell(self, shell: Tool) -> Tool:
        """Return ``shell`` for the user's own commands."""
        return own_shell(shell, self._consent, self._sharing, self._delivery)

    def own_query(self, query: Tool) -> Tool:
        """Return ``query`` for the user's own queries."""
        return own_query(query, self._consent, self._sharing, self._delivery)
