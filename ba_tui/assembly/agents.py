"""Agents from their specs: what each has for itself, and the interceptors around its loop in their order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from ba_tui.assembly.start import Startup
from ba_tui.assembly.tools import SessionTools
from ba_tui.context.attaching import Attaching
from ba_tui.context.compression.agent_window import AgentWindow, WindowSources
from ba_tui.context.compression.compressor import no_veto
from ba_tui.context.compression.overflow import Fitting
from ba_tui.context.goal_check import GoalCheck
from ba_tui.context.limits import BudgetLimits, Spending
from ba_tui.context.media import AcceptedMedia
from ba_tui.context.prompt_notes import PendingNotices, PromptNotes
from ba_tui.context.prompt_size import PromptSize
from ba_tui.context.reminders import NearlyFull, Refocus
from ba_tui.context.touched import NestedInstructions
from ba_tui.core.agent import Agent, Interceptor
from ba_tui.core.agent_spec import AgentSpec
from ba_tui.core.effects import UNLIMITED
from ba_tui.core.events import MAIN
from ba_tui.core.loop_limits import BudgetLimit, own_limits
from ba_tui.core.messages import declared
from ba_tui.core.own_shell import SharedCommands
from ba_tui.core.tool import Tool, Toolset
from ba_tui.core.values import frozen
from ba_tui.feature import AgentParts, Stage
from ba_tui.permissions.secrets.sharing import PromptSecrets
from ba_tui.providers.in_use import ModelInUse, keys_of
from ba_tui.providers.overriding import Overridden
from ba_tui.providers.tokens.calibration import Calibration
from ba_tui.providers.tokens.registry import encoders_of
from ba_tui.providers.wire.text_calls import TextCalls
from ba_tui.resources import project_root
from ba_tui.sessions.requests import RequestStore
from ba_tui.tools.builtin.images import pixels
from ba_tui.tools.builtin.recall import NAME as RECALL
from ba_tui.tools.builtin.recall import ReadHistory
from ba_tui.tools.builtin.todos import UnfinishedTodos
from ba_tui.tools.builtin.tool_search import Search
from ba_tui.tools.running.background import EndedShells
from ba_tui.tools.selection import SelectedTools
from ba_tui.tools.visible import Joining, Visible


@frozen
class SessionLine:
    """What all agents of a session share beside its tools. ``nested``: instructions for files that are touched;
    ``note_key``: see core.messages.declared."""

    notes: PromptNotes
    nested: NestedInstructions
    notices: PendingNotices
    spending: Spending
    history: ReadHistory
    calibration: Calibration
    requests: RequestStore
    note_key: str


class AgentBuilder:
    """Builds the agents of one session."""

    def __init__(self, start: Startup, tools: SessionTools, line: SessionLine) -> None:
        self._start, self._tools, self._line = start, tools, line
        self._prompts = PromptSecrets(tools.permissions.sharing, tools.permissions.sandbox.begin)
        root, settings = project_root(tools.permissions.workspace.root), start.settings
        encoders = encoders_of(start.where, root, lambda: start.trusts(root))
        veto = tools.hooks.before_compress if tools.hooks else no_veto
        self._windows = WindowSources(
            settings, start.access, start.where, start.budget, encoders, line.calibration, pixels,
            line.notes, line.history, veto,
        )  # fmt: skip

    def parts(self, spec: AgentSpec, model: ModelInUse | None = None) -> AgentParts:
        tools, notes, main = self._tools.guarded, self._tools.skill_notes, spec.name == MAIN
        registry = tools.isolated.registry_of(spec.copy) if spec.copy else tools.registry
        in_use = model or ModelInUse(self._start.access, self._start.settings, self._line.requests.recorder)
        # Skills of the person's own take no room from the tools of a first request.
        counted = spec.prompt.replace(notes.catalogue, notes.own_catalogue).strip()
        skills = notes.search if notes.listed.shortened and main else None
        search = Search(tools.search, skills)
        visible = Visible(registry, search, system=counted, for_subagent=not main)
        # What its file names is there from the start: it may be given nothing to look for the rest with.
        visible.show(spec.tools or ())
        own = main and spec.tools is None and spec.ceiling == UNLIMITED
        chosen: Toolset = visible if own else SelectedTools(visible, spec.tools, spec.ceiling)

        def recalling() -> Sequence[Tool]:
            visible.show([RECALL])
            return chosen.visible()

        window = AgentWindow(self._windows, in_use, spec.prompt, chosen.visible, recalling)
        return AgentParts(spec, in_use, visible, chosen, window)

    def agent(self, parts: AgentParts, model: str, attaching: Attaching | None = None) -> Agent:
        """An agent with a connection of its own. Reads keys, and may load an SDK for them: call it off the loop.

        Raises:
            UsageError: ``model`` can't be a model. AuthFailed: there is no key.
        """
        parts.model.choose(model)
        self._tools.permissions.sharing.know(keys_of(self._start, model))
        provider = parts.model.provider(model, parts.spec.effort)
        wanted = parts.model.wanted(self._tools.skills.model, lambda: self._tools.policy.mode, main=parts.main)
        provider = Overridden(provider, wanted, parts.model.provider)
        fitting, spec = AcceptedMedia(Fitting(provider, parts.window.compressor), pixels), parts.spec
        return Agent(fitting, parts.tools, spec.prompt, self._interceptors(parts, attaching), spec.ceiling)

    @asynccontextmanager
    async def child(self, spec: AgentSpec, model: str) -> AsyncGenerator[Agent]:
        """An agent to be spawned; ``model`` answers where its spec names none. What it holds is closed on leaving."""
        parts = self.parts(replace(spec, prompt=declared(spec.prompt, self._line.note_key)))
        agent = await asyncio.to_thread(self.agent, parts, spec.model or model)
        try:
            yield agent
        finally:
            await agent.provider.close()
            await parts.window.close()

    def _interceptors(self, parts: AgentParts, attaching: Attaching | None) -> tuple[Interceptor, ...]:
        """All of them in the order in which they run; those of None are left out."""
        tools, line, settings, window = self._tools, self._line, self._start.settings, parts.window
        compression, budget = settings.compression, parts.spec.budget
        each: tuple[Interceptor | None, ...] = (
            *own_limits(parts.spec, settings.error_budget, parts.model.reasoning),
            # The person reads what start-up found before anything else of the turn.
            line.notices if parts.main else None,
            # What the person's own commands printed stands behind the prompt that they belong to.
            SharedCommands() if parts.main else None,
            # Files that the prompt mentions stand right behind it.
            attaching,
            # What is to be followed for the files that the last calls were about.
            line.nested if parts.main else None,
            # No request goes out beyond the limits of the session, or of the agent: nothing after this is worth doing.
            BudgetLimits(line.spending, parts.model.info, settings.max_cost, settings.max_tokens),
            BudgetLimit(budget) if budget else None,
            self._prompts if parts.main else None,
            # Memories go with the prompt. What was read so far is known before a call may carry it away.
            *tools.guarded.at(Stage.RECALL, parts),
            tools.permissions.egress,
            # Skills that start now bring tools, which the next one lists.
            tools.skill_notes if parts.main else None,
            *tools.guarded.at(Stage.CONNECT, parts),
            Joining(parts.visible, tools.guarded.needed),
            *tools.guarded.at(Stage.JOIN, parts),
            # Background work that has ended, and todos that are left, are facts that hooks may want to see.
            EndedShells(tools.guarded.shells),
            UnfinishedTodos(),
            TextCalls(parts.tools.visible),
            tools.hooks,
            # An answer that everybody else lets pass is judged by what was expected.
            GoalCheck(parts.spec.expected_output, tools.ask) if parts.spec.expected_output else None,
            *tools.guarded.at(Stage.PLAN, parts),
            *tools.guarded.at(Stage.VERIFY, parts),
            *tools.guarded.at(Stage.FINISH, parts),
            # All notes of the step are there: now the window is looked at, and compressed last of all.
            Refocus(compression.refocus_rounds),
            NearlyFull(window.gauge, compression.trigger, automatic=compression.enabled),
            window.compressor,
            PromptSize(window.gauge),
            # Learns from the usage of the answer, with the request as it was really sent.
            window.tokens.calibrating(window.overhead.tokens, parts.tools.visible),
        )
        return tuple(one for one in each if one)
