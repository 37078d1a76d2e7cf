"""core.ports.brain.Brain: the agent, the reminders and the inventory of one conversation."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ba_tui.assembly.commanding import CommandContext, CommandExpander, command_files
from ba_tui.assembly.condensing import Condensing, Counter, Sizes, Ties
from ba_tui.assembly.inventory import ToolList
from ba_tui.assembly.mentioning import Links, Mentioning
from ba_tui.assembly.models import provider_for
from ba_tui.assembly.skilling import Overridden
from ba_tui.assembly.stock import Shop, Stock, ToolSetting
from ba_tui.assembly.words import Tokens, joined, system_prompt
from ba_tui.context.instructions import InstructionFile, Instructions, read_instructions, said
from ba_tui.core.agent import Agent
from ba_tui.core.conversation import Library
from ba_tui.core.errors import UsageError
from ba_tui.core.events import Notice
from ba_tui.core.loop_limits import CutAnswers, StepLimit
from ba_tui.core.messages import Message, reminder
from ba_tui.core.ports.brain import Inventory
from ba_tui.core.ports.context import ContextPart
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.provider import ModelInfo, Provider
from ba_tui.core.text.wording import sentence
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from ba_tui.observe.metrics import Metrics
from ba_tui.permissions.egress.detection import Egress
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.rules.rulebook import strangers
from ba_tui.permissions.secrets.sharing import PromptSecrets
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.retrying import Persistent
from ba_tui.resources import project_root
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.results.artifacts import FOLDER, Artifacts
from ba_tui.settings import Loaded
from ba_tui.tools.builtin.recall import NAME as RECALL
from ba_tui.tools.builtin.todos import UnfinishedTodos
from ba_tui.tools.modalities import Modalities
from ba_tui.tools.running.background import EndedShells
from ba_tui.tools.visible import Joining, Visible

if TYPE_CHECKING:
    from ba_tui.hooks.turns import HookTurns


UNREAD, CUT = "Models don't see it.", "Models don't see the rest: shorten it."


class Bench(Shop, Counter, Protocol):
    """What a desk takes from the workshop."""

    loaded: Loaded
    access: ProviderAccess
    library: Library | None
    rules: Sequence[RuleLine]
    strict: bool

    def opens(self, root: Path) -> bool: ...


class Telling:
    """core.agent.Interceptor: says once, in the first turn, what start-up found."""

    def __init__(self, notices: list[Notice]) -> None:
        self._notices = notices

    async def before(self, branch: Branch) -> None:
        while self._notices:
            branch.emit(self._notices.pop(0))

    async def after(self, reply: Message, branch: Branch) -> None:
        """Nothing more to say."""


class Desk:
    """core.ports.brain.Brain: what one conversation works with."""

    def __init__(self, workshop: Bench, cwd: Path, journal: JournalFile) -> None:
        self._workshop = workshop
        self._cwd = cwd
        self._model: ModelInfo | None = None
        self._unread: set[str] = set()
        """Instruction files that can't be read, as they were told."""
        root = project_root(cwd)
        self._source = InstructionFile(cwd, root, workshop.where.config, closed=not workshop.opens(root))
        self.metrics = Metrics()
        results = Artifacts(journal.path.parent / FOLDER)
        modalities = Modalities(lambda: self._sees("vision"), lambda: self._sees("documents"))
        history = partial(asyncio.to_thread, journal.read)
        session = (journal.header.id, journal.path)
        self._stock = Stock(workshop, ToolSetting(cwd, results, history, self._fullness, modalities, session))
        self._broken = [Notice(f"A workflow can't be used: {text}", "warning") for text in self._stock.add_flows()]
        self._broken += [Notice(f"A hook can't be used: {text}", "warning") for text in self._stock.hooks.problems]
        self._broken += [Notice(text, "warning", "See ba tools list.") for text in self._strangers()]
        self._prompts, self._egress = PromptSecrets(self._stock.sharing), Egress()
        self.permissions.bounds = replace(self.permissions.bounds, suspicion=self._egress.reason)
        self.skilling = self._stock.skilling
        self.skilling.missing = workshop.access.missing
        self._broken += [Notice(text, "warning", "See ba skills list.") for text in self.skilling.problems]
        prompt = system_prompt(workshop.loaded, cwd, self._stock.ingress)
        self._system = joined(prompt, self.skilling.catalogue)
        self._tokens = Tokens(workshop.where, self._in_use, cwd)
        self._broken += [Notice(text, "warning") for text in self._tokens.problems]
        sizes = Sizes(self._in_use, self._tokens.count, self._fixed, self._size)
        self._condensing = Condensing(workshop, sizes, Ties(self._veto, self._said_again, history, self._with_recall))
        self.condenser, self.spending = self._condensing.compressor, self._condensing.spending
        first = joined(prompt, self.skilling.own_catalogue)
        self._visible = Visible(self._stock.registry, self._stock.search, system=first)
        tools = ToolList(self._stock, self._visible, self.metrics)
        stock = self._stock
        means = CommandContext(
            lambda: stock.registry.get_tool("shell"),
            lambda: self.inventory.skills,
            workshop.access.missing,
            self.skilling.skills.confirmed,
            lambda: self.permissions.level == "default",
            stock.ingress.clean,
        )
        self.commands = CommandExpander(command_files(workshop.where, stock.ingress), means)
        self.permissions.grant(lambda: self.commands.granted)
        self.inventory = Inventory(
            tools,
            stock.results,
            stock.shells,
            stock.confinement,
            checkpoints=stock.checkpoints,
            commands=self.commands,
            skills=self.skilling.list,
        )
        self.keeping = stock.keeping
        links = Links(cwd, journal.path, self._in_use, lambda: self.inventory.skills, lambda: workshop.library)
        self.mentioning = Mentioning(stock, self._visible, self._tokens, links)
        self.inventory = replace(self.inventory, mentions=self.mentioning.offering)

    def _strangers(self) -> Sequence[str]:
        """Rules about no tool. Raises UsageError for a flag where nobody is there to read of it."""
        rules, tools = self._workshop.rules, self._stock.registry.names()
        if self._workshop.strict and (wrong := strangers((each for each in rules if each.layer == "flag"), tools)):
            raise UsageError(sentence(wrong[0]), "See ba tools list.")
        return strangers(rules, tools)

    @property
    def permissions(self) -> Policy:
        return self._stock.permissions

    def model(self, name: str) -> ModelInfo:
        return self._workshop.access.model(name)

    def agent(self, model: str) -> Agent:
        settings = self._workshop.settings
        self._model = self.model(model)
        provider = Overridden(self._provider(model), self.skilling.skills.model, self._provider)
        if not gc.isenabled():
            # Start-up is over (see __main__): what was imported stays, and no collection need look at it again. The
            # others come less often than by default, which is a twentieth of a step.
            gc.freeze()
            gc.enable()
            gc.set_threshold(10_000, 20, 20)
        told = Telling(self._broken)
        shells = EndedShells(self._stock.shells)
        hooked = (self.hooks,) if self.hooks else ()
        joining = (self.skilling.notes, Joining(self._visible, self._needed))
        rest = (self._prompts, self._egress, *joining, shells, UnfinishedTodos(), *hooked)
        learning = self._tokens.calibrating(self._fixed, self._visible.visible)
        loop = (StepLimit(settings.max_loops), CutAnswers())
        interceptors = (*loop, *self._condensing.around((told, self.mentioning.attaching), rest), learning)
        fitting = self._condensing.fitting(provider)
        return Agent(fitting, self._visible, self._system, interceptors)

    def _needed(self) -> Sequence[str]:
        """Tools that are listed once there is something for them."""
        stored = ("read_artifact",) if self._stock.results.begun else ()
        return (*stored, *self.skilling.joining())

    def _provider(self, model: str) -> Provider:
        return Persistent(provider_for(self.model(model), self._workshop.settings, self._workshop.access))

    def reminders(self, transcript: Transcript) -> Sequence[Message]:
        now = datetime.now().astimezone()
        notes = [reminder(f"It is {now:%A, %Y-%m-%d %H:%M} ({now:%Z}).")]
        instructions = self._instructions()
        for item in instructions:
            if item.note:
                line = f"{item.shown} was {item.note}." if item.text else f"{item.shown} {item.note}."
                self._warn([line], CUT if item.text else UNREAD)
            self._warn([f"{item.shown}: {why}." for why in item.refused], UNREAD)
        if told := said(instructions, transcript.messages):
            notes.append(told)
        return notes

    def _warn(self, lines: Sequence[str], hint: str) -> None:
        """Tell once what is wrong with instructions."""
        new = [line for line in lines if line not in self._unread]
        self._unread.update(new)
        self._broken += [Notice(line, "warning", hint) for line in new]

    def context(self, transcript: Transcript, model: str) -> Sequence[ContextPart]:
        from ba_tui.assembly.breakdown import Filling, context_parts  # noqa: PLC0415 - not before somebody looks

        settings, info = self._workshop.settings, self.model(model)
        own = settings.system_prompt_file
        origin = str(own) if own else "built in"
        origin += ", append_system_prompt" if settings.append_system_prompt else ""
        tools, deferred = self._visible.visible(), len(self._visible.deferred())
        filling = Filling(self._system, origin, tools, deferred, self._instructions(), self.skilling.catalogue)
        reserve = min(settings.max_output_tokens or info.max_output, info.max_output, info.window // 2)
        return context_parts(filling, transcript, self._tokens, info, reserve)

    @property
    def hooks(self) -> HookTurns | None:
        """What runs along the conversation; None where there are no hooks."""
        return self._stock.hooks.turns

    async def close(self) -> None:
        if self.hooks:
            await self.hooks.close()
        await self._condensing.close()
        await self._stock.close()
        await asyncio.to_thread(self.permissions.save_hits)
        await asyncio.to_thread(self._tokens.save)

    def _instructions(self) -> Sequence[Instructions]:
        return read_instructions(self._source, self._stock.ingress)

    def _in_use(self) -> ModelInfo:
        return self._model or self.model(self._workshop.access.default_model())

    def _fixed(self) -> int:
        """Tokens of every request beside the conversation."""
        return self._tokens.text(self._system) + self._tokens.count_tools(self._visible.visible())

    def _size(self) -> int:
        """Bytes of every request beside the conversation."""
        shown = (f"{tool.name}{tool.description}{tool.input_schema}" for tool in self._visible.visible())
        return sum(len(text.encode()) for text in (self._system, *shown))

    async def _veto(self, trigger: str, focus: str) -> str | None:
        return await self.hooks.before_compress(trigger, focus) if self.hooks else None

    def _said_again(self, transcript: Transcript) -> Sequence[Message]:
        told = said(self._instructions(), transcript.messages)
        return [told] if told else []

    def _with_recall(self) -> Sequence[Tool]:
        """The tools of the next request, once notes stand for earlier rounds."""
        self._visible.show([RECALL])
        return self._visible.visible()

    def _fullness(self) -> float:
        """How full the window was at the newest answer, from 0 to 1."""
        return self.metrics.ledger.filled / self._model.window if self._model and self._model.window else 0.0

    def _sees(self, what: str) -> bool:
        if self._model is None:
            return False
        if what == "vision":
            return self._model.vision
        return self._model.vision and self._workshop.access.profile(self._model).kind == "anthropic"
