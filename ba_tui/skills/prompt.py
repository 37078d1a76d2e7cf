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
from ba_tui.core.messages import Message, Text, ToolOutput, reminder
from ba_tui.core.turn import Branch
from ba_tui.core.work import ActiveSkill
from ba_tui.skills.activation import Activated, ActivationRequest, framed, whole_in
from ba_tui.skills.active import ActiveSkills, SkillChange
from ba_tui.skills.catalogue import Catalogue, catalogue, fitting, offered
from ba_tui.skills.stack import SkillStack

FOUND = 5
"""Skills that a search gives at most."""
MAX_RESTATEMENTS = 3
"""How often instructions that got lost are said again within one turn."""
SUGGESTED = 3
"""Skills that are named with a prompt at most."""
SUGGESTED_ABOVE = 2.5
"""How well a skill must fit a prompt to be named: its name, or three words of its description."""


class SkillNotes:
    """core.agent.Interceptor: carries out what the person asked for, and says again what a compression took."""

    def __init__(self, skills: ActiveSkills) -> None:
        self.skills = skills
        self._begun = False
        self._suggested: set[str] = set()
        self._ahead: WeakKeyDictionary[Branch, tuple[tuple[ActiveSkill, ...], tuple[ActiveSkill, ...]]] = (
            WeakKeyDictionary()
        )
        self._again: WeakKeyDictionary[Branch, Counter[str]] = WeakKeyDictionary()
        self._found: dict[tuple[str, str], tuple[int, Message]] = {}

    @cached_property
    def listed(self) -> Catalogue:
        """The skills that the system prompt lists; the same as long as the session is open. Blocks the first time."""
        return catalogue(self.skills, self.skills.context.recent.ids())

    @property
    def catalogue(self) -> str:
        return self.listed.text

    @cached_property
    def own_catalogue(self) -> str:
        """The part of it that ships with ba, and so shares the room of the first request."""
        return catalogue(self.skills, (), ("bundled",)).text

    def search(self, query: str) -> Sequence[tuple[str, str]]:
        """Names and descriptions of the skills that fit ``query``, for the search of tools. Blocks."""
        return [(line.skill.id, line.description) for line in fitting(query, offered(self.skills), FOUND)]

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
            self._tell_shortened(branch)
        await self._suggest(branch)
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

    def _tell_shortened(self, branch: Branch) -> None:
        if not (short := len(self.listed.shortened)):
            return
        left = f", {self.listed.left} of them not listed" if self.listed.left else ""
        text = f"Your skills are many: the model sees the descriptions of {short} shortened{left}."
        branch.emit(Notice(text, "info", "It finds them with tool_search; you can start any: /NAME."))

    async def _suggest(self, branch: Branch) -> None:
        """Name the skills that fit a new prompt and whose descriptions the system prompt holds only in part."""
        messages = branch.transcript.messages
        words = messages[-1].own_text if messages and messages[-1].role == "user" else ""
        if not self.listed.shortened or not words.strip():
            return
        found = await asyncio.to_thread(fitting, words, self.listed.shortened, SUGGESTED, SUGGESTED_ABOVE)
        new = [line for line in found if line.skill.id not in self._suggested]
        if new:
            self._suggested.update(line.skill.id for line in new)
            lines = [f"- {line.skill.id}: {line.description}" for line in new]
            branch.emit(Steered(_note("\n".join(["Skills that may fit what is asked:", *lines]))))

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
