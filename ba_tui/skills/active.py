"""The skills of one conversation: which may be started, what starting one brings, what holds while one is active.

It changes no conversation by itself: the tools and the interceptor in ``prompt`` put what is made here into it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.questions import Question, Reply
from ba_tui.core.text.wording import sentence
from ba_tui.core.transcript import Transcript
from ba_tui.core.values import frozen
from ba_tui.core.work import ActiveSkill
from ba_tui.settings.allowed_tools import rules_of
from ba_tui.skills.activation import (
    MAX_PARAMETER_CHARS,
    Activated,
    ActivationNote,
    ActivationRequest,
    Modifier,
    framed,
)
from ba_tui.skills.catalog import Skill, SkillCatalog
from ba_tui.skills.config import SkillChoices
from ba_tui.skills.confirmed import Confirmed
from ba_tui.skills.content import digest_of, files_of, folder_of, further, instructions
from ba_tui.skills.folders import MENTION, placed
from ba_tui.skills.recent import RecentSkills
from ba_tui.skills.stack import SkillRefused, SkillStack

log = logging.getLogger(__name__)
AskPerson: TypeAlias = Callable[[Question], Awaitable[Reply]]
JOINING = ("end_skill", "run_skill_script")
FOLDER = "skills"
NOT_HERE = "are not here or can't be allowed beforehand"
OFF = "Skills are switched off in skills.yaml (global.enabled)."


def _asks() -> bool:
    return True


def _all(rules: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(rules), ()


@frozen
class SkillContext:
    """What surrounds a conversation: its id, the ``root`` of its files, ``asks``: whether confirming tools would change
    anything, ``why_not``: why a model can't answer, ``active``: the skills that are active in its transcript now,
    ``recent``: those that were used last in any conversation; ``grantable`` parts rules that can allow something here
    from others.
    """

    conversation: str = ""
    root: Path = Path()
    asks: Callable[[], bool] = _asks
    why_not: Callable[[str], str] = lambda model: ""
    active: Callable[[], tuple[ActiveSkill, ...]] = tuple[ActiveSkill, ...]
    recent: RecentSkills = field(default_factory=RecentSkills)
    grantable: Callable[[Iterable[str]], tuple[tuple[str, ...], tuple[str, ...]]] = _all


@frozen
class SkillChange:
    """What a person wants to begin or to end with the next request; ``core`` and ``file`` begin by themselves."""

    id: str
    ends: bool = False
    request: ActivationRequest = field(default_factory=lambda: ActivationRequest(""))


class ActiveSkills:
    """All that skills do in one conversation."""

    def __init__(
        self, catalog: SkillCatalog, choices: SkillChoices, confirmed: Confirmed, context: SkillContext
    ) -> None:
        self.catalog = catalog
        self.choices = choices
        self.confirmed = confirmed
        self.context = context
        self.active = context.active
        """The skills that are active now, the newest last."""
        self.switched: dict[str, bool] = {}
        self._queued: deque[SkillChange] = deque()
        self._lock = threading.Lock()

    def found(self, key: str) -> Skill:
        """Blocks while folders are looked through. Raises UsageError when there is none that can be used."""
        if not self.choices.enabled:
            raise UsageError(OFF, "Set it to true to use them.")
        key = key.strip().removeprefix(MENTION).removeprefix("@")
        skill = self.catalog.get(key)
        if skill is None:
            self.catalog.look()
            skill = self.catalog.get(key)
        if skill is None:
            import difflib  # noqa: PLC0415 - rare path

            ids = [each.id for each in self.catalog.usable()]
            close = difflib.get_close_matches(key, ids, 3, 0.5)
            known = f"Did you mean {', '.join(close)}?" if close else f"There are: {', '.join(ids) or 'none'}."
            raise UsageError(f"There is no skill {key[:80]!r}.", known)
        if skill.head.trouble:
            raise UsageError(f"The skill {skill.id} is broken: {skill.head.trouble}.", "Correct its SKILL.md.")
        return skill

    def offered(self, skill: Skill, *, for_subagent: bool = False) -> bool:
        """Whether models are told of it and may start it."""
        choice = self.choices.of(skill.id)
        enabled = self.switched.get(skill.id, choice.enabled)
        return enabled and not skill.head.hidden and (choice.available_to_subagent or not for_subagent)

    def place(self, skill: Skill) -> str:
        """How the folder of a skill is called before a model: never by an absolute path."""
        own = self.context.root / FOLDER / skill.id
        taken = os.path.lexists(own) and os.path.realpath(own) != os.path.realpath(skill.folder)
        return f"{MENTION}{skill.id}" if taken else f"{FOLDER}/{skill.id}"

    def modifier(self, skill: Skill) -> Modifier:
        tools, unknown = self.context.grantable(_located(rules_of(skill.head.tools), skill))
        model = "" if skill.head.model in {"inherit", "default"} else skill.head.model
        return Modifier(tools, skill.head.exclusive and bool(skill.head.tools), model, skill.head.hidden, unknown)

    async def start(self, request: ActivationRequest, ask: AskPerson) -> Activated:
        """Everything up to the point where the stack changes; the caller brings both into the conversation at once.

        Raises:
            UsageError: it can't be started; the message says why.
        """
        skill = await asyncio.to_thread(self.found, request.skill)
        request = replace(request, skill=skill.id, conversation=self.context.conversation)
        stack, modifier = SkillStack(request.chain), self.modifier(skill)
        if request.by == "model" and not self.offered(skill):
            why = "is started by the user only" if modifier.only_person else "is switched off for models"
            raise SkillRefused(f"The skill {skill.id} {why}.", f"The user can start it with /{skill.id}.")
        if request.level == 1:
            return Activated(request, (ActivationNote("metadata", _about(skill, self.place(skill)), True),), modifier)
        if skill.id in stack and request.level == 3:
            text = await asyncio.to_thread(further, skill, self.catalog.ingress, self.place(skill))
            return Activated(request, (ActivationNote("instruction", text, True),), modifier)
        stack.check(skill.id, by=request.by)
        return await self._started(skill, request, modifier, ask)

    async def _started(self, skill: Skill, request: ActivationRequest, modifier: Modifier, ask: AskPerson) -> Activated:
        parameters = request.parameters[:MAX_PARAMETER_CHARS]
        given = (skill, self.catalog.ingress, self.place(skill), parameters)
        reading = partial(instructions, *given, whole=request.level == 3)
        missing = await asyncio.to_thread(self.context.why_not, modifier.model) if modifier.model else ""
        digest, text = await asyncio.to_thread(lambda: (digest_of(skill), reading()))
        model = "" if missing else modifier.model
        active = ActiveSkill(
            skill.id, request.id, digest, parameters, modifier.tools, modifier.exclusive, model, request.by
        )
        notes = [ActivationNote("instruction", framed(active, text), True)]
        if modifier.tools:
            notes.append(await self._permissions(active, ask))
        if modifier.unknown:
            text = f"Of the tools it names, these {NOT_HERE}: {', '.join(modifier.unknown)}."
            notes.append(ActivationNote("permissions", text, True))
        notes += _metadata(skill, request, replace(modifier, model=model), missing)
        await asyncio.to_thread(self.context.recent.used, skill.id)
        log.info("%s: %s started the skill %s at depth %d", request.conversation, request.by, skill.id, request.depth)
        return Activated(request, tuple(notes), modifier, active)

    async def _permissions(self, active: ActiveSkill, ask: AskPerson) -> ActivationNote:
        tools = ", ".join(active.allowed_tools)
        if active.exclusive:
            tools = f"{tools}, and while it is active no others"
        if self.trusts(active):
            return ActivationNote("permissions", f"It may use without asking: {tools}.", True)
        if not self.context.asks():
            return ActivationNote("permissions", f"It is made for these tools: {tools}.", True)
        reply = await ask(_question(active))
        if reply.choice in {"deny", "text"}:
            said = f" They said: {reply.text.strip()}" if reply.by == "person" and reply.text.strip() else ""
            text = f"It is made for these tools: {tools}. The person is asked about each call as usual.{said}"
            return ActivationNote("permissions", text, True)
        try:
            await asyncio.to_thread(self.confirmed.add, active.id, active.digest, active.allowed_tools)
        except StorageError as error:
            return ActivationNote("permissions", f"It may use without asking, for now: {tools}. ({error})", True)
        return ActivationNote("permissions", f"It may use without asking: {tools}.", True)

    def trusts(self, active: ActiveSkill) -> bool:
        """Whether the user confirmed these tools of a skill, with the content it was started with."""
        return self.confirmed.has(active.id, active.digest, active.allowed_tools)

    def again(self, active: ActiveSkill) -> str:
        """The instructions of an active skill, to be said once more. Blocks. Raises UsageError when it is gone."""
        skill = self.found(active.id)
        changed = "" if digest_of(skill) == active.digest else "It has changed since it was started.\n\n"
        return changed + instructions(skill, self.catalog.ingress, self.place(skill), active.parameters)

    def granted(self) -> tuple[str, ...]:
        """The rules that hold while skills are active and confirmed: no one need be asked."""
        return tuple(dict.fromkeys(rule for one in self.active() if self.trusts(one) for rule in one.allowed_tools))

    def wanted(self) -> list[str]:
        """The names of all tools that active skills ask for."""
        return list(dict.fromkeys(rule.partition("(")[0] for one in self.active() for rule in one.allowed_tools))

    def limits(self) -> ActiveSkill | None:
        """The newest active skill that lets nothing but its own tools be used."""
        return next((skill for skill in reversed(self.active()) if skill.exclusive), None)

    def model(self) -> str:
        """The model that the newest active skill wants instead; empty for none."""
        return next((skill.model for skill in reversed(self.active()) if skill.model), "")

    def queue(self, change: SkillChange) -> None:
        """To be done before the next request. Any thread."""
        with self._lock:
            if not change.ends and change.request.by != "person" and change.id in self.waiting():
                return
            self._queued.append(change)

    def waiting(self) -> list[str]:
        """The ids of what begins with the next request."""
        begun: list[str] = []
        for change in tuple(self._queued):
            if change.ends and change.id in begun:
                begun.remove(change.id)
            elif not change.ends:
                begun.append(change.id)
        return begun

    def take_queued(self) -> Sequence[SkillChange]:
        """All that wait, in order; they are taken."""
        with self._lock:
            taken = tuple(self._queued)
            self._queued.clear()
        return taken


def problems_of(skills: ActiveSkills) -> list[str]:
    """What is wrong with skills.yaml and the skills, for people. Blocks."""
    found, choices = skills.catalog.look(), skills.choices
    unknown = choices.unknown([skill.id for skill in found])
    broken = [f"A skill can't be used: {skill.path}: {skill.head.trouble}" for skill in found if skill.head.trouble]
    return [sentence(each) for each in (*map(str, (*choices.problems, *unknown)), *broken)]


def active_skills(transcript: Transcript) -> str:
    """Which are active, in a line; empty when none are."""
    active = ", ".join(skill.id for skill in transcript.skills)
    return f"active: {active}" if active else ""


def active_folders(skills: ActiveSkills) -> Sequence[tuple[str, Path]]:
    """The ids and folders of the active skills, the newest last. Blocks."""
    found = (skills.catalog.get(one.id) for one in skills.active())
    return [(skill.id, folder_of(skill)) for skill in found if skill]


def folder_named(skills: ActiveSkills, id: str) -> Path | None:
    """The folder of the skill ``id``; None for an unknown or broken one. Blocks."""
    skill = skills.catalog.get(id) if skills.choices.enabled else None
    return folder_of(skill) if skill and not skill.head.trouble else None


def joining(skills: ActiveSkills) -> Sequence[str]:
    """The tools that the model is told of while skills are active."""
    return (*JOINING, *skills.wanted()) if skills.active() else ()


def readable_folders(catalog: SkillCatalog, choices: SkillChoices) -> list[tuple[str, Path]]:
    """The folders of skills with the names that models read them by, which say nothing of where they lie. Blocks."""
    usable = catalog.usable() if choices.enabled else ()
    short = [(f"{FOLDER}/{skill.id}", skill.folder) for skill in usable]
    return [*short, *((f"{MENTION}{skill.id}", skill.folder) for skill in usable)]


def _located(rules: Sequence[str], skill: Skill) -> Sequence[str]:
    """``rules`` with whole paths of the skill's own files, as its instructions name them. Blocks."""
    if not any("/" in rule for rule in rules):
        return rules
    names = [file.name for file in files_of(skill)]
    return [placed(rule, folder_of(skill), names) for rule in rules]


def _about(skill: Skill, place: str) -> str:
    parts = [f"{skill.id}: {skill.head.description}", f"Instructions: about {skill.tokens:,} tokens, in {place}."]
    if skill.head.hint:
        parts.append(f"Parameters: {skill.head.hint}")
    return "\n".join(parts)


def _metadata(skill: Skill, request: ActivationRequest, modifier: Modifier, missing: str) -> list[ActivationNote]:
    """What the person is told."""
    why = {"file": ": matching file attached", "core": ": set in skills.yaml"}.get(request.by, "")
    notes = [ActivationNote("metadata", f"The skill {skill.id} started{why}.", False)]
    if modifier.model:
        notes.append(
            ActivationNote("warning", f"While the skill {skill.id} is active, {modifier.model} answers.", False)
        )
    if missing:
        text = f"The skill {skill.id} asks for the model {skill.head.model}; your model is used instead: {missing}"
        notes.append(ActivationNote("warning", text, False))
    if skill.large:
        notes.append(ActivationNote("warning", f"The skill {skill.id} is large: {skill.large}.", False))
    return notes


def _question(active: ActiveSkill) -> Question:
    return Question(
        "permission",
        f"Let the skill {active.id} use its tools without asking?",
        tool="activate_skill",
        args={"skill_id": active.id, "allowed_tools": list(active.allowed_tools)},
        reason="“Yes” applies until the skill changes, also in later sessions; “no” starts the skill and asks as usual",
        fixed=True,
    )
