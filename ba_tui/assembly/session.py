"""One session: its agents, its prompts, and what interfaces may read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from ba_tui.agent_files.catalog import main_spec
from ba_tui.assembly.start import StartOptions, Startup
from ba_tui.assembly.tools import SessionTools
from ba_tui.context.attachments import FOLDER as ATTACHED
from ba_tui.context.attachments import AttachmentContext, AttachmentInterceptor, Attachments
from ba_tui.context.commands import CommandFiles, folders, own_prompts
from ba_tui.context.compression.compressor import AgentWindow, WindowSources, no_veto
from ba_tui.context.compression.gauge import PromptSize
from ba_tui.context.files import FileIndex, find_ripgrep
from ba_tui.context.instructions import InstructionPlace
from ba_tui.context.mentions import MentionCompletion, MentionSource, OtherSessions, mention_sources
from ba_tui.context.own_commands import Admission, CommandContext, CommandExpander
from ba_tui.context.ports import AttachedFiles, MentionedData, PromptHooks, ServerPrompts
from ba_tui.context.reminders import BudgetLimits, GoalCheck, NearlyFull, Refocus, SessionSpending
from ba_tui.context.system_prompt import (
    InstructionList,
    NestedInstructions,
    PendingNotices,
    PromptNotes,
    TouchedFiles,
    instructions_now,
    prompt_origin,
    system_prompt,
)
from ba_tui.core.agent import Agent, BudgetLimit, Interceptor, own_limits
from ba_tui.core.calls import SharedCommands
from ba_tui.core.conversation import Conversation
from ba_tui.core.effects import UNLIMITED
from ba_tui.core.errors import ProviderError, off_loop
from ba_tui.core.events import MAIN, Notice, SideRequest
from ba_tui.core.messages import Message, declared
from ba_tui.core.ports.brain import AdmittedPrompt, Inventory
from ba_tui.core.ports.context import Condenser, ContextPart, MentionKind
from ba_tui.core.ports.permissions import Permissions
from ba_tui.core.ports.sessions import ReadHistory, SessionInfo
from ba_tui.core.provider import Modalities, ModelInfo
from ba_tui.core.teamwork import AgentSpec
from ba_tui.core.tool import Tool, Toolset
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Listener
from ba_tui.core.values import Once, frozen, late
from ba_tui.feature import AgentParts, Stage
from ba_tui.observe.logs import CallLog, soon
from ba_tui.observe.metrics import CallMetrics
from ba_tui.permissions.answers import GrantedRules, grantable
from ba_tui.permissions.secrets.sharing import PromptSecrets
from ba_tui.permissions.trust.grants import asked_once
from ba_tui.providers.agent_model import AgentModel, SmallModel, keys_of
from ba_tui.providers.pipeline import agent_pipeline
from ba_tui.providers.text_calls.detection import WrittenCallWarning
from ba_tui.providers.token_calibration import RATIOS, TokenCalibration
from ba_tui.providers.token_counter import encoders_of
from ba_tui.resources import project_root, user_home
from ba_tui.sessions.artifacts import FOLDER, Artifacts
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.requests import RequestStore
from ba_tui.settings.tool_names import rules_of
from ba_tui.skills.prompt import SkillList
from ba_tui.tools.builtin.todos import UnfinishedTodos
from ba_tui.tools.shells import EndedShells
from ba_tui.tools.toolbox import AgentSource, ModelRequests, SessionScope
from ba_tui.tools.visible import Search, SelectedTools, ToolArrivals, ToolList, Visible


@frozen
class SessionLine:
    """What all agents of a session share besides its tools. ``nested``: instructions for files that are touched;
    ``note_key``: see core.messages.declared."""

    notes: PromptNotes
    nested: NestedInstructions
    notices: PendingNotices
    spending: SessionSpending
    history: ReadHistory
    calibration: TokenCalibration
    requests: RequestStore
    note_key: str


class AgentBuilder:
    """Builds the agents of one session."""

    def __init__(self, start: Startup, tools: SessionTools, line: SessionLine) -> None:
        self._start, self._tools, self._line = start, tools, line
        self._prompts = PromptSecrets(tools.permissions.sharing, tools.permissions.sandbox.begin)
        root, settings = project_root(tools.permissions.workspace.root), start.settings
        encoders = encoders_of(start.where, root, lambda: start.trusts(root))
        hooks = tools.guarded.context.port(PromptHooks)
        veto = hooks.before_compress if hooks else no_veto
        self._windows = WindowSources(
            settings, start.access, start.where, start.budget, encoders, line.calibration, pixels,
            line.notes, line.history, veto,
        )  # fmt: skip

    def parts(self, spec: AgentSpec, model: AgentModel | None = None) -> AgentParts:
        tools, notes, main = self._tools.guarded, self._tools.skill_notes, spec.name == MAIN
        registry = tools.guards().isolated.registry_of(spec.copy) if spec.copy else tools.registry
        in_use = model or AgentModel(self._start.access, self._start.settings, self._line.requests.recorder)
        # The user's own skills must not displace tools in the first request.
        counted = spec.prompt.replace(notes.catalogue, notes.own_catalogue).strip()
        skills = notes.search if notes.listed.shortened and main else None
        search = Search(tools.search, skills)
        visible = Visible(registry, search, system=counted, for_subagent=not main)
        # The tools in the agent's file are listed from the start: it may lack the tool that searches for others.
        visible.show(spec.tools or ())
        own = main and spec.tools is None and spec.ceiling == UNLIMITED
        chosen: Toolset = visible if own else SelectedTools(visible, spec.tools, spec.ceiling)

        def recalling() -> Sequence[Tool]:
            visible.show([RECALL])
            return chosen.visible()

        window = AgentWindow(self._windows, in_use, spec.prompt, chosen.visible, recalling)
        return AgentParts(spec, in_use, visible, chosen, window)

    def agent(self, parts: AgentParts, model: str, attaching: AttachmentInterceptor | None = None) -> Agent:
        """Return an agent with a separate connection. Reads keys and may import an SDK: call it off the loop.

        Raises:
            UsageError: ``model`` is not a valid name. AuthFailed: there is no key.
        """
        start = self._start
        parts.model.choose(model)
        self._tools.permissions.sharing.know(keys_of(model, start.access, start.where, start.shell.withheld()))
        provider = parts.model.provider(model, parts.spec.effort)
        wanted = parts.model.wanted(self._tools.skills.model, lambda: self._tools.policy.mode, main=parts.main)
        shorten, spec = parts.window.compressor.shorten, parts.spec
        pipeline = agent_pipeline(provider, wanted, parts.model.provider, shorten, pixels)
        return Agent(pipeline, parts.tools, spec.prompt, self._interceptors(parts, attaching), spec.ceiling)

    @asynccontextmanager
    async def child(self, spec: AgentSpec, model: str) -> AsyncGenerator[Agent]:
        """Yield a sub-agent and close its resources afterwards; ``model`` is used when its spec names none."""
        parts = self.parts(replace(spec, prompt=declared(spec.prompt, self._line.note_key)))
        agent = await asyncio.to_thread(self.agent, parts, spec.model or model)
        try:
            yield agent
        finally:
            await agent.provider.close()
            await parts.window.close()

    def _interceptors(self, parts: AgentParts, attaching: AttachmentInterceptor | None) -> tuple[Interceptor, ...]:
        """Return the interceptors in the order in which they run."""
        tools, line, settings, window = self._tools, self._line, self._start.settings, parts.window
        compression, budget = settings.compression, parts.spec.budget
        each: tuple[Interceptor | None, ...] = (
            *own_limits(parts.spec, settings.error_budget, parts.model.reasoning),
            # Notices of the start come before everything else in the turn.
            line.notices if parts.main else None,
            # The output of the user's own commands follows their prompt.
            SharedCommands() if parts.main else None,
            # Files that the prompt mentions follow it directly.
            attaching,
            # Instructions for the files that the last calls used.
            line.nested if parts.main else None,
            # The limits of session and agent are checked here, since they make everything below useless.
            BudgetLimits(line.spending, parts.model.info, settings.max_cost, settings.max_tokens),
            BudgetLimit(budget) if budget else None,
            self._prompts if parts.main else None,
            # Memories go with the prompt. The files read so far are recorded before a call may send their content away.
            *tools.guarded.at(Stage.RECALL, parts),
            tools.permissions.egress,
            # Skills that start now add tools, which the next interceptor lists.
            tools.skill_notes if parts.main else None,
            *tools.guarded.at(Stage.CONNECT, parts),
            ToolArrivals(parts.visible, tools.guarded.needed),
            *tools.guarded.at(Stage.JOIN, parts),
            # Before the hooks, which may need to see ended background work and open todos.
            EndedShells(tools.guarded.shells),
            UnfinishedTodos(),
            WrittenCallWarning(parts.tools.visible),
            *tools.guarded.at(Stage.HOOK, parts),
            # An answer that all others accept is checked against the expected result.
            GoalCheck(parts.spec.expected_output, tools.ask) if parts.spec.expected_output else None,
            *tools.guarded.at(Stage.PLAN, parts),
            *tools.guarded.at(Stage.VERIFY, parts),
            *tools.guarded.at(Stage.FINISH, parts),
            # All notes of the step exist now, so the window can be measured; compression comes last.
            Refocus(compression.refocus_rounds),
            NearlyFull(window.gauge, compression.trigger, automatic=compression.enabled),
            window.compressor,
            PromptSize(window.gauge),
            # Compares the usage of the answer with the request as it was sent.
            window.tokens.calibrating(window.gauge.fixed, parts.tools.visible),
        )
        return tuple(one for one in each if one)


class SessionPrompts:
    """``admission`` decides about a prompt, ``attaching`` adds the files that it mentions; ``commands`` and
    ``mentions`` complete it in an interface."""

    def __init__(
        self, start: Startup, tools: SessionTools, folder: Path, main: AgentParts, touched: TouchedFiles
    ) -> None:
        guarded, permissions, active = tools.guarded, tools.permissions, tools.skills
        workspace, policy, registry = permissions.workspace, permissions.policy, tools.registry
        clean, self.skills, kept = tools.ingress.clean, SkillList(active), folder / ATTACHED
        data: Once[MentionedData] = Once(lambda: guarded.context.offered(MentionedData))
        attached = late("ba_tui.tools.mentioned_files:MentionedFiles")
        files: Once[AttachedFiles] = Once(
            lambda: attached(workspace, guarded.readers, policy.judge, permissions.sharing, kept)
        )
        sessions = OtherSessions(start.library, folder.name, late("ba_tui.tools.mentioned_files:shortened_session"))
        index = FileIndex(workspace.root, find_ripgrep())
        window, visible, model = main.window, main.visible, main.model
        attachments = Attachments(
            AttachmentContext(
                files, window.tokens, model, self.skills, registry.names, visible.show, sessions, index, data
            )
        )
        self.attaching = AttachmentInterceptor(attachments, touched)

        def rules(named: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
            return grantable(rules_of(named), registry.names())

        root, config = tools.ingress.root, start.where.config
        commands = folders(user_home(), config, root, lambda: start.trusts(root), tools.plugins)
        context = CommandContext(
            guarded.shell, self.skills, partial(start.access.missing, in_file=True), active.confirmed,
            permissions.confirms, rules, clean, guarded.context.port(ServerPrompts),
        )  # fmt: skip
        self.commands = CommandExpander(CommandFiles([own_prompts(), *commands], tools.ingress), context)
        policy.grant(GrantedRules(self.commands.granted, "a command"))
        hooks = guarded.context.port(PromptHooks)
        self.admission = Admission(self.commands, hooks.admit if hooks else None, self.attaching)
        keep = partial(late("ba_tui.tools.builtin.media:kept_picture"), kept)
        offered: dict[MentionKind, MentionSource] = {
            kind: source for feature in guarded.features for kind, source in feature.mentions.items()
        }
        names = mention_sources(self.skills, lambda: registry.tools().values(), sessions, offered)

        def refresh() -> None:
            for feature in guarded.features:
                if feature.refresh:
                    feature.refresh()

        self.mentions = MentionCompletion(index, names, attachments.weigh, keep, refresh)


RECALL = "recall"
"""The tool that reads what the model no longer sees."""
pixels = late("ba_tui.tools.builtin.media:pixels")
SMALL_TOKENS = 2_000
"""Tokens of an answer of the small model: some models think before they write."""


@asked_once()
def conversation(start: Startup, info: SessionInfo, journal: JournalFile) -> Conversation:
    """Return the conversation, in the session's folder or, if that is gone, in ba's. Flags win over saved values."""
    cwd = info.cwd if info.cwd.is_dir() else start.cwd
    named = replace(info, cwd=cwd, model=info.model or start.access.default_model())
    transcript, settings = Transcript(), start.settings
    session = Session(start, named, journal, transcript)
    made = Conversation(named, journal, session, transcript)
    if made.read_only:
        return made
    wanted = (info.model and settings.model) if start.given("model") else session.main.spec.model
    if wanted and wanted != made.model:
        made.use_model(wanted)
    if info.model and start.given("permission_mode") and settings.permission_mode in made.permissions.modes():
        made.set_mode(settings.permission_mode)
    return made


def tools_alone(cwd: Path, flags: Mapping[str, object], results: Path | None = None) -> SessionTools:
    """Return the tools of ``cwd`` for work without a model, to be closed; long results are saved in ``results``.

    Raises:
        UsageError: a flag or a settings file is wrong.
    """
    start = Startup(cwd, StartOptions(flags), conversation)
    stored = Artifacts(results or start.where.cache / FOLDER, int(start.settings.commands.output_mb * 1e6))

    async def ask(system: str, text: str, purpose: str) -> tuple[str, SideRequest]:
        raise ProviderError("no model is there: only the tool runs")

    return SessionTools(start, SessionScope(cwd, stored), ask)


class Session:
    """core.ports.brain.Brain: everything that one conversation works with."""

    def __init__(self, start: Startup, info: SessionInfo, journal: JournalFile, transcript: Transcript) -> None:
        self._start, self._transcript = start, transcript
        settings, cwd, root, folder = start.settings, info.cwd, project_root(info.cwd), journal.path.parent

        metrics, spending, self._requests = CallMetrics(), SessionSpending(), RequestStore(folder)
        model = AgentModel(start.access, settings, self._requests.recorder)
        history = partial(asyncio.to_thread, journal.read)
        results = Artifacts(folder / FOLDER, int(settings.commands.output_mb * 1e6))

        seen = Modalities(model.sees_pictures, model.reads_documents)
        full, id, key = (lambda: model.filled(metrics.ledger.filled)), journal.header.id, journal.header.note_key
        self._small = SmallModel(start.access, model.info, SMALL_TOKENS)
        making = AgentSource(lambda: model.info().id, lambda spec, model: self._agents.child(spec, model))
        asking, ask = ModelRequests(model, spending, settings), self._small.ask
        scope = SessionScope(cwd, results, id, journal.path, transcript, history, full, seen, ask, making, asking)
        self._tools = tools = SessionTools(start, scope, ask)
        guarded, registry, policy = tools.guarded, tools.registry, tools.policy

        # The main agent.
        foreign, closed = settings.other_instructions, not start.trusts(root)
        place = InstructionPlace(cwd, root, start.where.config, user_home(), closed, foreign, guarded.writes.held)
        touched = TouchedFiles(cwd)
        self._instructions = partial(instructions_now, place, tools.ingress, touched)
        notices = PendingNotices(tools.problems)
        self._notes = PromptNotes(self._instructions, notices, tools.guarded.ahead.outcomes)
        self._calibration = TokenCalibration(start.where.state / RATIOS)
        nested = NestedInstructions(touched, registry.get_tool, self._instructions)
        line = SessionLine(self._notes, nested, notices, spending, history, self._calibration, self._requests, key)
        self._agents = AgentBuilder(start, tools, line)
        prompt, skills = system_prompt(start.loaded, cwd, tools.ingress), tools.skill_notes.catalogue
        self.main = main = self._agents.parts(main_spec(tools.agents, settings, declared(prompt, key), skills), model)
        for text in main.window.tokens.problems:
            notices.add(Notice(text, "warning"))

        self._prompts = prompts = SessionPrompts(start, tools, folder, main, touched)
        # Views for interfaces.
        listed = ToolList(registry, lambda: guarded.guards().health, main.visible, metrics)
        self.inventory = Inventory(
            listed, results, guarded.shells, tools.permissions.confinement, prompts.skills, guarded.checkpoints,
            prompts.mentions, prompts.commands, guarded.own_shell, guarded.own_query, tools.agents,
            InstructionList(place, tools.ingress, touched), guarded.context.ports,
        )  # fmt: skip
        self.condenser: Condenser | None = main.window.compressor
        self.permissions: Permissions = policy
        self.listeners: Sequence[Listener] = (
            # Figures first, since other listeners read them.
            *(metrics.apply, spending.apply),
            CallLog(info.id, soon).apply,
            # At the end of a turn its files are saved, then the permissions of its command are revoked.
            *guarded.listeners,
            prompts.admission.apply,
        )

    async def admit(self, prompt: Message, branch: Branch) -> AdmittedPrompt:
        return await self._prompts.admission.admit(prompt, branch)

    def model(self, name: str) -> ModelInfo:
        return self._start.access.model(name)

    def agent(self, model: str) -> Agent:
        # A call that has waited since an earlier run needs its tool before a request lists it.
        newest = [message for message in self._transcript.messages[-2:] if message.role == "assistant"]
        self.main.visible.show([call.name for message in newest for call in message.calls])
        return self._agents.agent(self.main, model, self._prompts.attaching)

    def reminders(self, transcript: Transcript) -> Sequence[Message]:
        return self._notes.notes(transcript)

    def context(self, transcript: Transcript, model: str) -> Sequence[ContextPart]:
        from ba_tui.context.breakdown import RequestPrefix, context_parts, reserved  # noqa: PLC0415 - not before somebody looks

        main, settings = self.main, self._start.settings
        shares = self._tools.shares
        tools, deferred, instructions = main.visible.visible(), len(main.visible.deferred()), self._instructions()
        filling = RequestPrefix(main.spec.prompt, prompt_origin(settings), tools, deferred, instructions, shares)
        info = self.model(model)
        return context_parts(filling, transcript, main.window.tokens, info, reserved(info, settings.max_output_tokens))

    async def close(self) -> None:
        await self.main.window.close()
        await self._tools.close()
        await self._small.close()
        await off_loop(self._calibration.save)
        await off_loop(self._requests.close)
