"""The plans of a session for faces and the model. ``carrying`` does the work and is imported late."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.core.agent import Interceptor
from ba_tui.core.errors import UsageError
from ba_tui.core.events import Event, Notice, Steered, TurnStarted
from ba_tui.core.messages import Message, reminder
from ba_tui.core.ports.agents import Delegation, Work
from ba_tui.core.ports.contributions import SourceTool, ToolsFound, ToolSource
from ba_tui.core.ports.memory import TaskMemory
from ba_tui.core.teamwork import ENDED_STATUSES, TEAM_PLAN, Plan
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.core.tool import Tool
from ba_tui.core.turn import Branch
from ba_tui.feature import OpenFeature, SessionContext, Stage, for_main
from ba_tui.features.plans.engine.plan_mode import NAME as PRESENT
from ba_tui.features.plans.engine.plan_mode import PLAN_TOOL, PlanMode, PlanScope, flow_folders
from ba_tui.ingress import Ingress, Read
from ba_tui.resources import bundled
from ba_tui.sessions.artifacts import Artifacts
from ba_tui.settings.sections.agents import PlanSettings
from ba_tui.tools.definitions import Definition

if TYPE_CHECKING:
    from ba_tui.features.plans.engine.carrying import PlanWork
    from ba_tui.features.plans.engine.plan_tool import PlanCall


class Workflows:
    """The workflows of ``folders``; a later folder wins. They are read once; their steps use the session's tools at the
    time of the call.
    """

    def __init__(
        self, folders: Sequence[Path], read: Read, tools: Callable[[], Mapping[str, Tool]], results: Artifacts
    ) -> None:
        self._folders = folders
        self._read = read
        self._tools = tools
        self._results = results
        self._found: ToolsFound | None = None

    def look(self) -> ToolsFound:
        """See core.ports.contributions.ToolSource."""
        if self._found is None:
            self._found = self._loaded() if any(folder.is_dir() for folder in self._folders) else ToolsFound()
        return self._found

    def _loaded(self) -> ToolsFound:
        # Templates take 20 ms to load, and most users have no workflows.
        from ba_tui.features.plans.engine.flow_files import load_flows  # noqa: PLC0415
        from ba_tui.features.plans.engine.flow_run import flow_tools  # noqa: PLC0415

        flows, broken = load_flows(self._folders, self._read)
        made, wrong = flow_tools(flows, self._tools(), self._tools, self._results)
        tools = [SourceTool(tool, str(flows[tool.name].document.path)) for tool in made]
        return ToolsFound(tools, [str(problem) for problem in (*broken, *wrong)])


_SPOKEN = regex(r"(?i)\bplan(?!s?[ -]mode)(?:s|nen|ning|ifier|ificar?|en)?\b|step by step|计划|方案|规划")
GO_ON = "Go on with it: {}. What was completed is kept."
OWN, TEAM = "/plan resume", "/team resume"


class PlanSession(Interceptor):
    """The plans of one session, which its events contain; a listener, and the work of the tool plan."""

    def __init__(self, definition: Definition, settings: PlanSettings, scope: PlanScope) -> None:
        self._settings = settings
        self._scope = scope
        self._running: set[str] = set()
        self._said: list[str] = []
        self._spoken = self._told = False
        self.tool = definition.late(self.by_model)

    def plan(self, goal: str) -> Work:
        """Return work that makes a plan for ``goal``, asks about it (Question ``plan`` with a PlanGraph), runs it and
        answers. ``Reply.edited`` is the plan as edited by the user, as JSON."""

        async def work(branch: Branch) -> None:
            await self._work().from_goal(goal, branch)

        return work

    def resume(self, plan: str) -> Work:
        """Return work that continues a plan with its completed steps. Raises UsageError."""
        record = self._scope.transcript.plans.find(plan)
        if record is None:
            raise UsageError(f"There is no plan {one_line(plan, 60)!r} in this session.", "Make one: /plan GOAL.")
        if record.plan.id.startswith(TEAM_PLAN):
            raise UsageError("This plan belongs to a team, which carries it out.", f"Go on with the team: {TEAM}.")
        if not resumable(record.plan) or plan in self._running:
            state = "running" if plan in self._running else record.plan.state
            raise UsageError(f"The plan can't go on: it is {state}.", "Make a new one: /plan GOAL.")

        async def work(branch: Branch) -> None:
            await self._work().go_on(record, branch)

        return work

    def latest(self) -> Plan | None:
        """Return the newest plan of the session in its current state."""
        newest = self._scope.transcript.plans.newest
        return newest.plan if newest and newest.plan.subtasks else None

    def interrupted(self) -> str:
        """Return a line about the interrupted newest plan and how to continue it; empty if it was not interrupted.
        Known only after the history was read."""
        plan = self.latest()
        if plan is None or plan.id in self._running or not resumable(plan):
            return ""
        done = sum(step.status == "completed" for step in plan.subtasks)
        goal = one_line(plan.task.goal or plan.task.original_query, 80)
        by = TEAM if plan.id.startswith(TEAM_PLAN) else OWN
        how = "was not approved yet" if plan.state == "proposed" else "was interrupted"
        return f"The plan “{goal}” {how}: {done} of {len(plan.subtasks)} steps are completed. {GO_ON.format(by)}"

    def needed(self) -> Sequence[str]:
        """Return the tool once the user mentions a plan; in plan mode the model presents a plan instead."""
        return (PLAN_TOOL,) if self._spoken and not self._scope.mode.on else ()

    def apply(self, event: Event) -> None:
        match event:
            case TurnStarted(agent="main", prompt=message):
                self._hear(message)
            case Steered(agent="main", message=Message(origin="steer") as message):
                self._hear(message)
                if self._running:
                    self._said.append(message.said.strip())
            case _:
                pass

    async def before(self, branch: Branch) -> None:
        """Report once that a plan was interrupted in an earlier run."""
        if self._told:
            return
        self._told = True
        if line := self.interrupted():
            if not self._scope.attended:
                # The app reports it when it opens a session.
                branch.emit(Notice(line, "warning"))
            branch.emit(Steered(reminder(f"{line} Only the user can go on with it.")))

    async def by_model(self, goal: str, reason: str, waiting: PlanCall) -> Plan:
        """Make and execute a plan within a call of the model; return its final state, or the unapproved plan.

        Raises:
            BaError: no plan could be made, or one is running.
        """
        if self._running:
            raise UsageError("A plan is running already.", "Wait for its end.")
        return await self._work().within_call(goal, reason, waiting)

    async def close(self) -> None:
        if self._scope.requests:
            await self._scope.requests.close()

    def _work(self) -> PlanWork:
        from ba_tui.features.plans.engine.carrying import PlanWork  # noqa: PLC0415 - few sessions have a plan

        return PlanWork(self._scope, self._settings, self._said, self._running)

    def _hear(self, message: Message) -> None:
        self._spoken = self._spoken or bool(_SPOKEN.search(message.said))


def resumable(plan: Plan) -> bool:
    """Return whether the plan can be resumed: it was not rejected and has not ended."""
    open_ = any(step.status not in ENDED_STATUSES or step.undecided for step in plan.subtasks)
    return plan.state in {"proposed", "approved", "running", "paused", "cancelled"} and (
        open_ or plan.state == "running"
    )


def open_plans(context: SessionContext) -> OpenFeature:
    """Offer the PlanSession to faces, with plan mode and workflows."""
    scope, policy, where = context.scope, context.permissions.policy, context.where
    mode = PlanMode(lambda: policy.mode, policy.set_mode, attended=context.attended)
    session = PlanSession(
        context.definitions[PLAN_TOOL],
        context.loaded.settings.plans,
        PlanScope(
            scope.transcript,
            lambda: context.registry().tools(),
            context.offered(Delegation),
            context.offered(TaskMemory),
            scope.results,
            mode,
            scope.requests,
            context.attended,
            agents=context.agent_files,
            history=scope.history,
        ),
    )
    folders = flow_folders(bundled("config"), where.config, context.trusted)
    workflows = Workflows(folders, context.offered(Ingress).raw, lambda: context.registry().tools(), scope.results)
    return OpenFeature(
        (session.tool, context.definitions[PRESENT].late(mode)),
        (ToolSource("workflow", workflows.look),),
        lambda: (*((PRESENT,) if mode.presents else ()), *session.needed()),
        interceptors=((Stage.PLAN, for_main(mode)), (Stage.FINISH, for_main(session))),
        listeners=(session.apply,),
        ports={"ba_tui.features.plans.session:PlanSession": lambda: session},
        close=session.close,
    )
