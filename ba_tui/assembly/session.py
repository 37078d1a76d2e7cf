"""One session: its main agent, what goes with prompts, and what faces may look into."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from ba_tui.assembly.agents import AgentBuilder, SessionLine
from ba_tui.assembly.rooms import session_rooms
from ba_tui.assembly.start import Startup
from ba_tui.assembly.tools import SessionScope, SessionTools, rules_for
from ba_tui.context.admission import Admission
from ba_tui.context.attachments import FOLDER as ATTACHED
from ba_tui.context.attachments import Attaching, Attachments, Surroundings
from ba_tui.context.commands import CommandFiles, folders
from ba_tui.context.files import FileIndex
from ba_tui.context.instructions import InstructionFile, read_instructions
from ba_tui.context.limits import Spending
from ba_tui.context.mention_sources import OtherSessions, mention_sources
from ba_tui.context.mentions import Offering
from ba_tui.context.own_commands import CommandContext, CommandExpander
from ba_tui.context.prompt_notes import PendingNotices, PromptNotes
from ba_tui.context.system_prompt import joined, prompt_origin, system_prompt
from ba_tui.core.agent import Agent
from ba_tui.core.agent_spec import AgentSpec
from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import UsageError
from ba_tui.core.events import MAIN, Notice
from ba_tui.core.messages import Message
from ba_tui.core.ports.brain import Admitted, Inventory
from ba_tui.core.ports.context import Condenser, ContextPart
from ba_tui.core.ports.permissions import Permissions
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.provider import ModelInfo
from ba_tui.core.text.wording import sentence
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Listener
from ba_tui.observe.calls import CallLog
from ba_tui.observe.metrics import Metrics
from ba_tui.permissions.rules.granted import GrantedRules
from ba_tui.permissions.rules.rulebook import strangers
from ba_tui.permissions.verdicts import JudgedCall
from ba_tui.providers.in_use import ModelInUse
from ba_tui.providers.tokens.calibration import RATIOS, Calibration
from ba_tui.resources import project_root, user_home
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.requests import RequestStore
from ba_tui.sessions.results.artifacts import FOLDER, Artifacts
from ba_tui.skills.active import problems_of as skill_problems
from ba_tui.skills.listing import SkillList
from ba_tui.tools.builtin.search import find_ripgrep
from ba_tui.tools.guards.secrets import secrets
from ba_tui.tools.inventory import ToolList
from ba_tui.tools.mentioned_files import MentionedFiles, shortened_session
from ba_tui.tools.modalities import Modalities

MB = 1e6
SOON = 0.05
"""Delay before the call log is written, in seconds."""


def conversation(start: Startup, info: SessionInfo, journal: JournalFile) -> Conversation:
    """In the session's own folder, or in ba's when that is gone. Flags win over what the session had."""
    cwd = info.cwd if info.cwd.is_dir() else start.cwd
    named = replace(info, cwd=cwd, model=info.model or start.access.default_model())
    transcript = Transcript()
    made = Conversation(named, journal, Session(start, named, journal, transcript), transcript)
    settings = start.settings
    if info.model and "model" in start.flags and settings.model != info.model:
        made.use_model(settings.model)
    if info.model and "permission_mode" in start.flags and settings.permission_mode in made.permissions.modes():
        made.set_mode(settings.permission_mode)
    return made


class Session:
    """core.ports.brain.Brain: what one conversation works with."""

    def __init__(self, start: Startup, info: SessionInfo, journal: JournalFile, transcript: Transcript) -> None:
        self._start = start
        settings, cwd, root = start.settings, info.cwd, project_root(info.cwd)

        # What happened so far.
        metrics, spending = Metrics(), Spending()
        self._requests = RequestStore(journal.path.parent)
        model = ModelInUse(start.access, settings, self._requests.recorder)
        history = partial(asyncio.to_thread, journal.read)
        results = Artifacts(journal.path.parent / FOLDER, int(settings.commands.output_mb * MB))

        # Tools within their guards.
        scope = SessionScope(
            cwd,
            results,
            journal.header.id,
            journal.path,
            transcript,
            history,
            lambda: model.filled(metrics.ledger.filled),
            Modalities(model.sees_pictures, model.reads_documents),
        )
        self._tools = tools = SessionTools(start, scope)
        self._rooms = session_rooms(tools, start.where, root if start.trusts(root) else None)
        tools.registry.join(source for room in self._rooms for source in room.tools)
        tools.registry.refresh()
        problems = [Notice(f"A workflow can't be used: {text}", "warning") for text in tools.registry.joined_problems()]
        problems += [Notice(f"A hook can't be used: {text}", "warning") for text in tools.hook_problems]
        problems += [Notice(text, "warning", "See ba tools list.") for text in unknown_tools(start, tools)]
        problems += [Notice(text, "warning", "See ba skills list.") for text in skill_problems(tools.skills)]

        # The main agent.
        source = InstructionFile(cwd, root, start.where.config, closed=not start.trusts(root))
        self._instructions = lambda: read_instructions(source, tools.ingress)
        notices = PendingNotices(problems)
        self._notes = PromptNotes(self._instructions, notices)
        self._calibration = Calibration(start.where.state / RATIOS)
        line = SessionLine(self._notes, notices, spending, history, self._calibration, self._requests)
        self._agents = AgentBuilder(start, tools, line)
        system = joined(system_prompt(start.loaded, cwd, tools.ingress), tools.catalogue)
        self._main = main = self._agents.parts(AgentSpec(MAIN, prompt=system, max_loops=settings.max_loops), model)
        for text in main.tokens.problems:
            notices.add(Notice(text, "warning"))

        # What goes with a prompt: files that it mentions, what its command stands for, what hooks add.
        skills = SkillList(tools.skills)
        files = MentionedFiles(
            tools.workspace,
            tools.readers,
            lambda tool, args: tools.permissions.judge(JudgedCall(tool, args, cwd)),
            secrets(tools.sharing),
        )
        sessions = OtherSessions(start.library, journal.path.parent.name, shortened_session)
        surroundings = Surroundings(
            files.attached(journal.path.parent / ATTACHED),
            files.clean,
            main.tokens.aside,
            lambda: model.info().window,
            skills,
            tools.registry.names,
            main.visible.show,
            sessions.read,
        )
        attachments = Attachments(surroundings)
        self._attaching = Attaching(attachments)
        commands = CommandExpander(
            CommandFiles(folders(user_home(), start.where.config, root, lambda: start.trusts(root)), tools.ingress),
            CommandContext(
                lambda: tools.registry.get_tool("shell"),
                skills,
                start.access.missing,
                tools.skills.confirmed,
                tools.confirms,
                rules_for,
                tools.ingress.clean,
            ),
        )
        tools.permissions.grant(GrantedRules(commands.granted, "a command"))
        self._admission = Admission(commands, tools.hooks.admit if tools.hooks else None, self._attaching)

        # What faces may look into.
        names = mention_sources(skills, lambda: tools.registry.tools().values(), sessions)
        self.inventory = Inventory(
            ToolList(tools.registry, tools.health, main.visible, metrics),
            results,
            tools.shells,
            tools.confinement,
            skills,
            tools.checkpoints,
            Offering(cwd, FileIndex(cwd, find_ripgrep()), names, attachments.weigh),
            commands,
        )
        self.condenser: Condenser | None = main.compressor
        self.permissions: Permissions = tools.permissions
        self.listeners: Sequence[Listener] = (
            # Figures first: what the others do may look at them.
            metrics.apply,
            spending.apply,
            CallLog(info.id, later).apply,
            # The end of a turn: its files are kept, then what its command was allowed is taken back.
            tools.checkpointing.apply,
            self._admission.apply,
            # The person's hooks last: they see what is settled.
            *((tools.hooks.apply,) if tools.hooks else ()),
        )

    async def admit(self, prompt: Message, branch: Branch) -> Admitted:
        return await self._admission.admit(prompt, branch)

    def model(self, name: str) -> ModelInfo:
        return self._start.access.model(name)

    def agent(self, model: str) -> Agent:
        return self._agents.agent(self._main, model, self._attaching)

    def reminders(self, transcript: Transcript) -> Sequence[Message]:
        return self._notes.notes(transcript)

    def context(self, transcript: Transcript, model: str) -> Sequence[ContextPart]:
        from ba_tui.context.breakdown import Filling, context_parts  # noqa: PLC0415 - not before somebody looks

        main, settings, info = self._main, self._start.settings, self.model(model)
        filling = Filling(
            main.spec.prompt,
            prompt_origin(settings),
            main.visible.visible(),
            len(main.visible.deferred()),
            self._instructions(),
            [share for room in self._rooms for share in room.shares],
        )
        reserve = min(settings.max_output_tokens or info.max_output, info.max_output, info.window // 2)
        return context_parts(filling, transcript, main.tokens, info, reserve)

    async def close(self) -> None:
        if self._tools.hooks:
            await self._tools.hooks.close()
        await self._main.close()
        await self._tools.close()
        await asyncio.to_thread(self._calibration.save)
        await asyncio.to_thread(self._requests.close)


def unknown_tools(start: Startup, tools: SessionTools) -> Sequence[str]:
    """Rules about no tool. Raises UsageError for a flag where nobody is there to read of it."""
    names = tools.registry.names()
    if start.strict and (wrong := strangers((each for each in start.rules if each.layer == "flag"), names)):
        raise UsageError(sentence(wrong[0]), "See ba tools list.")
    return strangers(start.rules, names)


def later(work: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(SOON, work)
