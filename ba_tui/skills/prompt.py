"""What a model is told of skills: the catalogue in the system prompt, and notes when one starts, ends or got lost.

Notes join before a request, all of one change together, so that they never come between a call and its result.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from weakref import WeakKeyDictionary

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Notice, SkillsChanged, Steered
from ba_tui.core.messages import Message, Text, ToolOutput, clean_text, reminder
from ba_tui.core.turn import Branch
from ba_tui.core.work import ActiveSkill
from ba_tui.ingress import Owner
from ba_tui.skills.activation import Activated, ActivationRequest, framed, whole_in
from ba_tui.skills.active import ActiveSkills, SkillChange
from ba_tui.skills.catalog import Skill
from ba_tui.skills.stack import SkillStack

CATALOGUE_BYTES = 8_000
"""Bytes of the catalogue at most."""
DESCRIPTION = (400, 240, 160, 100, 60, 0)
"""Characters of a description that are tried until the whole fits."""
MAX_RESTATEMENTS = 3
"""How often instructions that got lost are said again within one turn."""
HEADING = """\
# Skills
Instructions for particular work. When one fits what is asked, call activate_skill with its name before you begin."""


def catalogue(skills: ActiveSkills, sources: Sequence[Owner] = ("bundled", "user", "project")) -> str:
    """The list of skills for the system prompt, the same for the same skills; empty where there are none. Blocks."""
    if not skills.choices.enabled:
        return ""
    found = [skill for skill in skills.catalog.usable() if skills.offered(skill) and skill.source in sources]
    if not found:
        return ""
    clean = skills.catalog.ingress.clean
    # Heads are clean already; what a skills.yaml says is not.
    said = {skill.id: skills.choices.of(skill.id).description for skill in found}
    described = {skill.id: clean(said[skill.id]) or skill.head.description for skill in found}
    lines: list[str] = []
    for room in DESCRIPTION:
        lines = [_line(skill, described[skill.id], room) for skill in found]
        if _size(lines) <= CATALOGUE_BYTES:
            return "\n".join([HEADING, *lines])
    left = len(lines)
    while _size(lines[:left]) > CATALOGUE_BYTES - 80:
        left -= 1
    more = f"- and {len(lines) - left} more, which the person can start by name"
    return "\n".join([HEADING, *lines[:left], more])


def _line(skill: Skill, description: str, room: int) -> str:
    text = " ".join(clean_text("".join(char if char.isprintable() else " " for char in description)).split())
    if len(text) > room:
        text = f"{text[: room - 1].rstrip()}…" if room else ""
    return f"- {skill.id}: {text}" if text else f"- {skill.id}"


def _size(lines: Sequence[str]) -> int:
    return len(HEADING) + sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)


class SkillNotes:
    """core.agent.Interceptor: carries out what the person asked for, and says again what a compression took."""

    def __init__(self, skills: ActiveSkills) -> None:
        self.skills = skills
        self._begun = False
        self._ahead: WeakKeyDictionary[Branch, tuple[tuple[ActiveSkill, ...], tuple[ActiveSkill, ...]]] = (
            WeakKeyDictionary()
        )
        self._again: WeakKeyDictionary[Branch, Counter[str]] = WeakKeyDictionary()
        self._found: dict[tuple[str, str], tuple[int, Message]] = {}

    @cached_property
    def catalogue(self) -> str:
        """The skills that the system prompt lists; the same as long as the session is open. Blocks the first time."""
        return catalogue(self.skills)

    @cached_property
    def own_catalogue(self) -> str:
        """The part of it that ships with ba, and so shares the room of the first request."""
        return catalogue(self.skills, ("bundled",))

    def stack(self, branch: Branch) -> SkillStack:
        """The stack as it will be when all that has been done in this step is folded."""
        folded = branch.transcript.skills
        known = self._ahead.get(branch)
        return SkillStack(known[1] if known and known[0] is folded else folded)

    def keep(self, branch: Branch, stack: SkillStack) -> None:
        """Remember what a result that is on its way will make of the stack: others may be on theirs."""
        self._ahead[branch] = (branch.transcript.skills, stack.active)

    async def before(self, branch: Branch) -> None:
        self._catch_up(branch)
        if not self._begun:
            self._begun = True
            self._begin(branch)
        for change in self.skills.take_queued():
            try:
                await (self._end(change, branch) if change.ends else self._start(change, branch))
            except UsageError as error:
                branch.emit(Notice(str(error), "warning", error.hint))
        for active in branch.transcript.skills:
            if not self._stands(active, branch):
                await self._say_again(active, branch)

    async def after(self, reply: Message, branch: Branch) -> None:
        """Nothing: a skill does not end with a turn."""

    def _stands(self, active: ActiveSkill, branch: Branch) -> bool:
        """Whether the model still has the instructions. Where they were found is looked at first: a step must not
        cost more in a longer conversation."""
        messages, key = branch.transcript.messages, (branch.name, active.activation)
        place, message = self._found.get(key, (0, None))
        if place < len(messages) and messages[place] is message:
            return True
        for place in range(len(messages) - 1, -1, -1):
            if any(whole_in(text, active) for text in _told(messages[place], active)):
                self._found[key] = (place, messages[place])
                return True
        return False

    def _catch_up(self, branch: Branch) -> None:
        """Results of calls that ran side by side may have been folded in another order than they were made in."""
        known = self._ahead.pop(branch, None)
        if known and known[1] != branch.transcript.skills:
            branch.emit(SkillsChanged(known[1]))

    def _begin(self, branch: Branch) -> None:
        """In a new session, what is to be active from its start comes before what the person asked for."""
        if any(message.role == "assistant" for message in branch.transcript.messages):
            return
        later = self.skills.take_queued()
        for id in self.skills.choices.core if self.skills.choices.enabled else ():
            skill = self.skills.catalog.get(id)
            # Of a name that is none, or a broken one, the start has told.
            if skill and not skill.head.trouble:
                self.skills.queue(SkillChange(id, request=ActivationRequest(id, "core")))
        for change in later:
            self.skills.queue(change)

    async def _start(self, change: SkillChange, branch: Branch) -> None:
        stack = self.stack(branch)
        skill = await asyncio.to_thread(self.skills.found, change.id)
        if skill.id in stack:
            if change.request.by != "person":
                return
            # The person starts it anew, perhaps with other parameters.
            stack.end(skill.id)
        request = ActivationRequest(
            skill.id, change.request.by, change.request.parameters, chain=stack.active, id=change.request.id
        )
        activated = await self.skills.start(request, branch.ask)
        if activated.active is not None:
            stack.push(activated.active)
            self._inject(activated, stack, branch)

    def _inject(self, activated: Activated, stack: SkillStack, branch: Branch) -> None:
        """All of it or nothing, and nothing in between: there is no await here."""
        branch.emit(SkillsChanged(stack.active))
        started = {"person": "The person started", "file": "A file is attached, which started"}
        who = started.get(activated.request.by, "The settings started")
        branch.emit(Steered(_note(f"{who} the skill {activated.request.skill}.\n{activated.instructions}")))
        for note in activated.notes:
            if not note.hidden:
                branch.emit(Notice(note.text, "warning" if note.kind == "warning" else "info"))

    async def _end(self, change: SkillChange, branch: Branch) -> None:
        stack = self.stack(branch)
        ended = ", ".join(skill.id for skill in stack.end(change.id))
        branch.emit(SkillsChanged(stack.active))
        branch.emit(Steered(_note(f"The person ended the skill {ended}. Its instructions hold no longer.")))
        branch.emit(Notice(f"The skill {ended} has ended."))

    async def _say_again(self, active: ActiveSkill, branch: Branch) -> None:
        count = self._again.setdefault(branch, Counter())
        count[active.activation] += 1
        if count[active.activation] > MAX_RESTATEMENTS:
            return
        try:
            text = await asyncio.to_thread(self.skills.again, active)
        except UsageError as error:
            stack = SkillStack(branch.transcript.skills)
            stack.end(active.id)
            branch.emit(SkillsChanged(stack.active))
            branch.emit(Notice(f"The skill {active.id} has ended: {error}", "warning", error.hint))
            return
        branch.emit(Steered(_note(f"The skill {active.id} is still active.\n{framed(active, text)}")))


def _note(text: str) -> Message:
    return reminder(text, origin="skill")


def _told(message: Message, active: ActiveSkill) -> Iterator[str]:
    """Texts that may hold the instructions."""
    mark = f'activation="{active.activation}"'
    for block in message.blocks if message.role == "user" else ():
        text = block.content if isinstance(block, ToolOutput) else block.text if isinstance(block, Text) else ""
        if mark in text:
            yield text
