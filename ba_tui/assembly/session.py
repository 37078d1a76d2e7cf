"""One session: its main agent, what goes with prompts, and what faces may look into."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.agent_files.main_agent import main_spec
from ba_tui.assembly.agents import AgentBuilder, SessionLine
from ba_tui.assembly.session_tools import GuardedTools
from ba_tui.assembly.start import Startup
from ba_tui.assembly.tools import SessionTools
from ba_tui.context.admission import Admission
from ba_tui.context.attaching import Attaching
from ba_tui.context.attachments import FOLDER as ATTACHED
from ba_tui.context.attachments import Attachments
from ba_tui.context.commands import CommandFiles, folders, own_prompts
from ba_tui.context.files import FileIndex
from ba_tui.context.instruction_files import InstructionPlace
from ba_tui.context.instruction_list import InstructionList
from ba_tui.context.limits import Spending
from ba_tui.context.mention_sources import OtherSessions, mention_sources
from ba_tui.context.mentions import MentionSource, Offering
from ba_tui.context.own_commands import CommandContext, CommandExpander, ServerPrompts
from ba_tui.context.prompt_notes import PendingNotices, PromptNotes
from ba_tui.context.session_data import MentionedData
from ba_tui.context.surroundings import Surroundings
from ba_tui.context.system_prompt import prompt_origin, system_prompt
from ba_tui.context.touched import NestedInstructions, TouchedFiles, instructions_now
from ba_tui.core.agent import Agent
from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import off_loop
from ba_tui.core.events import Notice
from ba_tui.core.messages import Message, declared
from ba_tui.core.ports.brain import Admitted, Inventory
from ba_tui.core.ports.context import Condenser, ContextPart
from ba_tui.core.ports.mentions import MentionKind
from ba_tui.core.ports.permissions import Permissions
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.provider import ModelInfo
from ba_tui.core.services import Library
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Listener
from ba_tui.core.values import frozen
from ba_tui.observe.calls import CallLog, soon
from ba_tui.observe.metrics import Metrics
from ba_tui.permissions.rules.granted import GrantedRules, grantable
from ba_tui.permissions.session import SessionPermissions
from ba_tui.permissions.trust.grants import asked_once
from ba_tui.providers.in_use import ModelInUse
from ba_tui.providers.small_model import SmallModel
from ba_tui.providers.tokens.calibration import RATIOS, Calibration
from ba_tui.resources import project_root, user_home
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.requests import RequestStore
from ba_tui.sessions.results.artifacts import FOLDER, Artifacts
from ba_tui.settings.allowed_tools import rules_of
from ba_tui.skills.active import ActiveSkills
from ba_tui.skills.listing import SkillList
from ba_tui.tools.builtin.images import kept_picture
from ba_tui.tools.builtin.search import find_ripgrep
from ba_tui.tools.guards.secrets import secrets
from ba_tui.tools.inventory import ToolList
from ba_tui.tools.mentioned_files import MentionedFiles, shortened_session
from ba_tui.tools.modalities import Modalities
from ba_tui.tools.model_requests import ModelRequests
from ba_tui.tools.session_scope import Delegating, SessionScope

if TYPE_CHECKING:
    from ba_tui.hooks.turns import HookTurns


@frozen
class PromptSources:
    """``folder`` of the session, where files from elsewhere are copied to; ``commands``: the person's own; ``missing``:
    why a model can't be asked; ``tokens`` counts, ``window`` is how many the model can read, ``show`` lists tools;
    ``touched``: the files that the conversation was about."""

    library: Library
    folder: Path
    commands: CommandFiles
    missing: Callable[[str], str]
    tokens: Callable[[Sequence[Message]], int]
    window: Callable[[], int]
    show: Callable[[Sequence[str]], None]
    touched: TouchedFiles


class SessionPrompts:
    """``admission`` decides about a prompt, ``attaching`` brings what it mentions; ``commands`` and ``mentions`` are
    what a face offers while one is typed."""

    def __init__(
        self,
        sources: PromptSources,
        tools: GuardedTools,
        permissions: SessionPermissions,
        active: ActiveSkills,
        hooks: HookTurns | None,
    ) -> None:
        workspace, policy, registry = permissions.workspace, permissions.policy, tools.registry
        clean, self.skills = active.catalog.ingress.clean, SkillList(active)
        data = tools.context.offered(MentionedData)
        files = MentionedFiles(workspace, tools.readers, policy.judge, secrets(permissions.sharing))
        sessions = OtherSessions(sources.library, sources.folder.name, shortened_session)
        index = FileIndex(workspace.root, find_ripgrep())
        attached = files.attached(sources.folder / ATTACHED)
        attachments = Attachments(
            Surroundings(
                attached,
                files.clean,
                sources.tokens,
                sources.window,
                self.skills,
                registry.names,
                sources.show,
                sessions.read,
                index.nearest,
                data,
            )
        )
        self.attaching = Attaching(attachments, sources.touched)

        def rules(named: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
            return grantable(rules_of(named), registry.names())

        context = CommandContext(
            tools.shell,
            self.skills,
            sources.missing,
            active.confirmed,
            permissions.confirms,
            rules,
            clean,
            tools.context.port(ServerPrompts),
        )
        self.commands = CommandExpander(sources.commands, context)
        policy.grant(GrantedRules(self.commands.granted, "a command"))
        self.admission = Admission(self.commands, hooks.admit if hooks else None, self.attaching)
        keep = partial(kept_picture, sources.folder / ATTACHED)
        offered: dict[MentionKind, MentionSource] = {
            kind: source for feature in tools.features for kind, source in feature.mentions.items()
        }
        names = mention_sources(self.skills, lambda: registry.tools().values(), sessions, offered)

        def refresh() -> None:
            for feature in tools.features:
                if feature.refresh:
                    feature.refresh()

        self.mentions = Offering(index, names, attachments.weigh, keep, refresh)


SMALL_TOKENS = 2_000
"""Tokens of an answer of the small model: some models think before they write."""


@asked_once()
def conversation(start: Startup, info: SessionInfo, journal: JournalFile) -> Conversation:
    """In the session's own folder, or in ba's when that is gone. Flags win over what the session had."""
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


class Session:
    """core.ports.brain.Brain: what one conversation works with."""

    def __init__(self, start: Startup, info: SessionInfo, journal: JournalFile, transcript: Transcript) -> None:
        self._start, self._transcript = start, transcript
        settings, cwd, root, folder = start.settings, info.cwd, project_root(info.cwd), journal.path.parent

        metrics, spending, self._requests = Metrics(), Spending(), RequestStore(folder)
        model = ModelInUse(start.access, settings, self._requests.recorder)
        history = partial(asyncio.to_thread, journal.read)
        results = Artifacts(folder / FOLDER, int(settings.commands.output_mb * 1e6))

        seen = Modalities(model.sees_pictures, model.reads_documents)
        full, id, key = (lambda: model.filled(metrics.ledger.filled)), journal.header.id, journal.header.note_key
        self._small = SmallModel(start.access, model.info, SMALL_TOKENS)
        making = Delegating(lambda: model.info().id, lambda spec, model: self._agents.child(spec, model))
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
        self._calibration = Calibration(start.where.state / RATIOS)
        nested = NestedInstructions(touched, registry.get_tool, self._instructions)
        line = SessionLine(self._notes, nested, notices, spending, history, self._calibration, self._requests, key)
        self._agents = AgentBuilder(start, tools, line)
        prompt, skills = system_prompt(start.loaded, cwd, tools.ingress), tools.skill_notes.catalogue
        self.main = main = self._agents.parts(main_spec(tools.agents, settings, declared(prompt, key), skills), model)
        for text in main.window.tokens.problems:
            notices.add(Notice(text, "warning"))

        # What goes with a prompt.
        commands = folders(user_home(), start.where.config, root, lambda: start.trusts(root), tools.plugins)
        own = CommandFiles([own_prompts(), *commands], tools.ingress)
        aside, shown, missing = main.window.tokens.aside, main.visible.show, partial(start.access.missing, in_file=True)
        sources = PromptSources(start.library, folder, own, missing, aside, lambda: model.info().window, shown, touched)
        self._prompts = prompts = SessionPrompts(sources, guarded, tools.permissions, tools.skills, tools.hooks)

        # What faces may look into.
        listed = ToolList(registry, guarded.health, main.visible, metrics)
        self.inventory = Inventory(
            listed, results, guarded.shells, tools.permissions.confinement, prompts.skills, guarded.checkpoints,
            prompts.mentions, prompts.commands, guarded.own_shell, guarded.own_query, tools.agents,
            tools.hook_list, InstructionList(place, tools.ingress, touched), guarded.context.ports,
        )  # fmt: skip
        self.condenser: Condenser | None = main.window.compressor
        self.permissions: Permissions = policy
        self.listeners: Sequence[Listener] = (
            # Figures first: what the others do may look at them.
            *(metrics.apply, spending.apply),
            CallLog(info.id, soon).apply,
            # The end of a turn: its files are kept, then what its command was allowed is taken back.
            *guarded.listeners,
            prompts.admission.apply,
            # The person's hooks last: they see what is settled.
            *((tools.hooks.apply,) if tools.hooks else ()),
        )

    async def admit(self, prompt: Message, branch: Branch) -> Admitted:
        return await self._prompts.admission.admit(prompt, branch)

    def model(self, name: str) -> ModelInfo:
        return self._start.access.model(name)

    def agent(self, model: str) -> Agent:
        # A call that waits since an earlier run needs its tool before a request lists it.
        newest = [message for message in self._transcript.messages[-2:] if message.role == "assistant"]
        self.main.visible.show([call.name for message in newest for call in message.calls])
        return self._agents.agent(self.main, model, self._prompts.attaching)

    def reminders(self, transcript: Transcript) -> Sequence[Message]:
        return self._notes.notes(transcript)

    def context(self, transcript: Transcript, model: str) -> Sequence[ContextPart]:
        from ba_tui.context.breakdown import Filling, context_parts, reserved  # noqa: PLC0415 - not before somebody looks

        main, settings = self.main, self._start.settings
        shares = self._tools.shares
        tools, deferred, instructions = main.visible.visible(), len(main.visible.deferred()), self._instructions()
        filling = Filling(main.spec.prompt, prompt_origin(settings), tools, deferred, instructions, shares)
        info = self.model(model)
        return context_parts(filling, transcript, main.window.tokens, info, reserved(info, settings.max_output_tokens))

    async def close(self) -> None:
        await self.main.window.close()
        await self._tools.close()
        await self._small.close()
        await off_loop(self._calibration.save)
        await off_loop(self._requests.close)
