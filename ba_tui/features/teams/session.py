"""The teams of one session. The modules that lead teams are imported with the first one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Event, TeamChanged
from ba_tui.core.ports.agents import Delegation, Work
from ba_tui.core.ports.contributions import ToolSource
from ba_tui.core.ports.memory import TaskMemory
from ba_tui.core.teamwork import Role, Team, TeamOrder
from ba_tui.core.turn import Branch
from ba_tui.feature import OpenFeature, SessionContext, Stage
from ba_tui.features.teams.engine.seating import AtWork, ConflictEscalation, Seats, TeamScope
from ba_tui.ingress import Ingress
from ba_tui.settings.sections.agents import TeamSettings
from ba_tui.tools.definitions import Definition

if TYPE_CHECKING:
    from ba_tui.features.teams.engine.leading import TeamLeader
    from ba_tui.features.teams.engine.leases import At, LenderTools
    from ba_tui.features.teams.engine.roles import Roles


class TeamSession:
    """The teams of one session; a listener too."""

    def __init__(self, settings: TeamSettings, scope: TeamScope, definitions: Mapping[str, Definition]) -> None:
        self._settings = settings
        self._scope = scope
        self._latest: Team | None = None
        self.seats = Seats(definitions, scope.agents)
        self.sources: tuple[ToolSource, ...] = (ToolSource("built-in", self.seats.look),)

    @cached_property
    def _leading(self) -> TeamLeader:
        from ba_tui.features.teams.engine.leading import TeamLeader  # noqa: PLC0415 - few sessions have a team

        return TeamLeader(self._settings, self._scope, self.seats)

    def run(self, order: TeamOrder) -> Work:
        """Return work that forms a team for the goal and answers with its findings. Raises UsageError for unknown
        roles."""
        if not order.goal.strip():
            raise UsageError("The goal is empty.", "Say what the team is to reach.")
        if order.deadline is not None and order.deadline <= 0:
            raise UsageError("The deadline must be more than 0 seconds.")
        chosen = tuple(self._roles().named(order.roles))
        self._leading.check(chosen)

        async def work(branch: Branch) -> None:
            await self._leading.run(order, chosen, branch)

        return work

    def resume(self) -> Work:
        """Return work that continues the newest, interrupted team of the session with its completed results and
        statements. The work raises UsageError if there is none."""

        async def work(branch: Branch) -> None:
            self._roles()
            await self._leading.go_on(branch)

        return work

    def pause(self, *, on: bool) -> bool:
        """Pause all members before their next requests, or resume them. Returns False if no team is working."""
        branch = self._leading.branch
        return branch is not None and branch.pause(branch.name, on=on)

    def paused(self) -> bool:
        """Return whether a working team is paused or about to pause."""
        branch = self._leading.branch if "_leading" in vars(self) else None
        return branch is not None and branch.pauses.now(branch.name)

    def roles(self) -> Sequence[Role]:
        """Return the known roles by name. Reads files."""
        return self._roles().usable()

    def problems(self) -> Sequence[str]:
        """Return the problems in role files, one line each. Reads files."""
        found = self._roles().look()
        broken = [
            f"{each.path}: the role {each.role.name} can't be used: {each.trouble}" for each in found if each.trouble
        ]
        return [*broken, *(f"{each.path}: {text}" for each in found for text in each.warnings)]

    def latest(self) -> Team | None:
        return self._latest

    def lending(self, role: Role, beat: float, at: At) -> LenderTools | None:
        """Return what a member of a role lends of this session's tools; None for nothing. Raises UsageError. Reads
        files.
        """
        from ba_tui.features.teams.engine.team_work import lent_by  # noqa: PLC0415 - see _leading

        return lent_by(role, self._scope, beat, at)

    def joining(self, show: Callable[[Sequence[str]], None]) -> AtWork:
        """Return the session parts that an agent needs as a member."""
        return AtWork(self.seats, show)

    def apply(self, event: Event) -> None:
        """Follow the newest team."""
        if isinstance(event, TeamChanged):
            self._latest = event.team

    def _roles(self) -> Roles:
        if self._scope.files is None:
            raise UsageError("Teams can only work in a conversation.", "Run ba team run GOAL.")
        from ba_tui.features.teams.engine.roles import Roles  # noqa: PLC0415 - see _leading

        return Roles(self._scope.files())


def open_teams(context: SessionContext) -> OpenFeature:
    """Offer the TeamSession to faces."""
    scope, team, redact = context.scope, context.loaded.settings.team, context.offered(Ingress).clean
    agents, memory = context.offered(Delegation), context.offered(TaskMemory)
    escalation = ConflictEscalation(
        team.escalate, team.escalate_after, scope.cwd, context.shell.inherited(), scope.id, redact
    )
    session = TeamSession(
        team,
        TeamScope(
            agents,
            context.agent_files,
            scope.results,
            scope.history,
            escalation,
            redact,
            scope.ask,
            None if memory.off() else lambda draft: memory.memory.remember(draft),
            scope.requests,
            tool=lambda name: context.registry().get_tool(name),
        ),
        context.definitions,
    )
    return OpenFeature(
        sources=session.sources,
        interceptors=((Stage.JOIN, lambda parts: session.joining(parts.visible.show)),),
        listeners=(session.apply,),
        ports={"ba_tui.features.teams.session:TeamSession": lambda: session},
    )
