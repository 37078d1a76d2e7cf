"""The skills of a session with their state, and their texts for models.

These are the catalogue in the system prompt, and notes when a skill starts, ends or was lost.

All notes of a change are added together before a request, so that they never come between a call and its result.
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
from ba_tui.core.ports.context import SkillLine, SkillState
from ba_tui.core.results import ActiveSkill
from ba_tui.core.text.wording import matching
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.ingress import Owner
from ba_tui.skills.activation import (
    MAX_PARAMETER_CHARS,
    ActivationRequest,
    SkillActivation,
    SkillStack,
    framed,
    whole_in,
)
from ba_tui.skills.active import NOT_HERE, ActiveSkills, SkillChange
from ba_tui.skills.catalog import Skill
from ba_tui.skills.content import body_of, digest_of, files_of
from ba_tui.skills.validator import check

OWN_BYTES = 3_200
"""Bytes for skills that are not bundled; with them a first request stays below 16 KB."""
WHOLE_CHARS = 400
"""Characters up to which a description is shown whole."""
LEAST_CHARS = 24
"""Characters below which a description is useless."""
RECENT = 8
"""Recently used skills whose descriptions stay whole."""
MORE_BYTES = 90
"""Bytes for the note on skills that are not listed."""
SOURCES: Sequence[Owner] = ("bundled", "user", "project")
HEADING = """\
# Skills
Instructions for particular work. When one fits what is asked, call activate_skill with its name before you begin."""


@frozen
class ListedSkill:
    """A skill that models may start, with its description on one line."""

    skill: Skill
    description: str

    def listed(self, room: int) -> str:
        text = self.description
        if len(text) > room:
            text = f"{text[: room - 1].rstrip()}…" if room >= LEAST_CHARS else ""
        return f"- {self.skill.id}: {text}" if text else f"- {self.skill.id}"

    def cut(self, room: int) -> bool:
        return len(self.description) > room


@frozen
class SkillCatalogue:
    """The catalogue for models. ``shortened``: skills with shortened descriptions; ``left``: number of omitted ones."""

    text: str = ""
    shortened: tuple[ListedSkill, ...] = ()
    left: int = 0


def catalogue(skills: ActiveSkills, recent: Sequence[str] = (), sources: Sequence[Owner] = SOURCES) -> SkillCatalogue:
    """Return the catalogue, which is the same for the same skills. Bundled and ``recent`` ones are whole, the others
    as long as all fit. Blocks."""
    lines = [line for line in offered(skills) if line.skill.source in sources]
    if not lines:
        return SkillCatalogue()
    bundled = [line for line in lines if line.skill.source == "bundled"]
    own = [line for line in lines if line.skill.source != "bundled"]
    newest = set(recent[:RECENT])
    kept = [line for line in own if line.skill.id in newest]
    others = [line for line in own if line.skill.id not in newest]
    kept_bytes = _size([line.listed(WHOLE_CHARS) for line in kept])
    if kept_bytes > OWN_BYTES // 2:
        kept, others, kept_bytes = [], own, 0
    room = _room(others, OWN_BYTES - kept_bytes)
    left = _left(others, room, OWN_BYTES - kept_bytes)
    shown = {line.skill.id: line.listed(room) for line in others[: len(others) - left]}
    shown |= {line.skill.id: line.listed(WHOLE_CHARS) for line in (*bundled, *kept)}
    listed = [shown[line.skill.id] for line in lines if line.skill.id in shown]
    more = [f"- and {left} more: look for them with tool_search"] if left else []
    shortened = tuple(line for line in others if line.skill.id not in shown or line.cut(room))
    return SkillCatalogue("\n".join([HEADING, *listed, *more]), shortened, left)


def offered(skills: ActiveSkills) -> Sequence[ListedSkill]:
    """Return all skills that models may start. Blocks."""
    if not skills.choices.enabled:
        return ()
    clean = skills.catalog.ingress.clean
    found = [skill for skill in skills.catalog.usable() if skills.offered(skill)]
    # Texts of skills.yaml, unlike those of skills, are not clean yet.
    said = {skill.id: skills.choices.of(skill.id).description for skill in found}
    return [ListedSkill(skill, _one_line(clean(said[skill.id]) or skill.head.description)) for skill in found]


def fitting(words: str, lines: Sequence[ListedSkill], most: int, least: float = 0) -> Sequence[ListedSkill]:
    """Return the skills that share words with a prompt or query, the best first."""
    return matching(words, lines, lambda line: (line.skill.id, line.description), least)[:most]


def _room(lines: Sequence[ListedSkill], most: int) -> int:
    """Return the characters for each description with which all lines fit into ``most`` bytes; 0 if only names fit."""
    low, high = LEAST_CHARS - 1, WHOLE_CHARS
    while low < high:
        middle = (low + high + 1) // 2
        if _size([line.listed(middle) for line in lines]) <= most:
            low = middle
        else:
            high = middle - 1
    return low if low >= LEAST_CHARS else 0


def _left(lines: Sequence[ListedSkill], room: int, most: int) -> int:
    """Return the number of last lines that do not fit even without descriptions."""
    listed = [line.listed(room) for line in lines]
    if _size(listed) <= most:
        return 0
    kept, size = 0, MORE_BYTES
    for text in listed:
        size += _size([text])
        if size > most:
            break
        kept += 1
    return len(lines) - kept


def _one_line(text: str) -> str:
    return " ".join(clean_text("".join(char if char.isprintable() else " " for char in text)).split())


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)


FOUND = 5
"""Most skills of a search."""
MAX_RESTATEMENTS = 3
"""How often lost instructions are repeated within a turn."""
SUGGESTED = 3
"""Most skills suggested with a prompt."""
SUGGESTED_ABOVE = 2.5
"""Lowest score of a suggested skill: its name, or three words of its description."""


class SkillNotes:
    """core.agent.Interceptor: applies the user's changes, and repeats instructions that compression removed."""

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
    def listed(self) -> SkillCatalogue:
        """Return the catalogue of the system prompt, fixed while the session is open. Blocks the first time."""
        return catalogue(self.skills, self.skills.context.recent.ids())

    @property
    def catalogue(self) -> str:
        return self.listed.text

    @cached_property
    def own_catalogue(self) -> str:
        """Return the bundled part of the catalogue, which shares the room of the first request."""
        return catalogue(self.skills, (), ("bundled",)).text

    def search(self, query: str) -> Sequence[tuple[str, str]]:
        """Return names and descriptions of skills that match ``query``, for tool_search. Blocks."""
        return [(line.skill.id, line.description) for line in fitting(query, offered(self.skills), FOUND)]

    def stack(self, branch: Branch) -> SkillStack:
        """Return the stack with all changes of this step, including those not yet folded."""
        folded = branch.transcript.skills
        known = self._ahead.get(branch)
        return SkillStack(known[1] if known and known[0] is folded else folded)

    def keep(self, branch: Branch, stack: SkillStack) -> None:
        """Note the stack that a pending result will lead to, as other results may be pending too."""
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
            if not self._has_instructions(active, branch):
                await self._say_again(active, branch)

    async def after(self, reply: Message, branch: Branch) -> None:
        """Do nothing: skills stay active after a turn."""

    def _has_instructions(self, active: ActiveSkill, branch: Branch) -> bool:
        """Return whether the model still has the instructions. Their last known place is checked first, so that the
        cost does not grow with the conversation."""
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
        """Correct the stack after parallel calls whose results were folded in another order."""
        known = self._ahead.pop(branch, None)
        if known and known[1] != branch.transcript.skills:
            branch.emit(SkillsChanged(known[1]))

    def _begin(self, branch: Branch) -> None:
        """Start the skills of a new session before those that the user asked for."""
        if any(message.role == "assistant" for message in branch.transcript.messages):
            return
        later = self.skills.take_queued()
        for id in self.skills.choices.core if self.skills.choices.enabled else ():
            skill = self.skills.catalog.get(id)
            # Unknown and broken skills were reported at the start.
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
        """Suggest skills that match a new prompt and whose descriptions are incomplete in the system prompt."""
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
            # The user starts it again, perhaps with other parameters.
            stack.end(skill.id)
        request = ActivationRequest(
            skill.id, change.request.by, change.request.parameters, chain=stack.active, id=change.request.id
        )
        activated = await self.skills.start(request, branch.ask)
        if activated.active is not None:
            stack.push(activated.active)
            self._inject(activated, stack, branch)

    def _inject(self, activated: SkillActivation, stack: SkillStack, branch: Branch) -> None:
        """Add all notes of an activation. Without an await nothing can come in between."""
        branch.emit(SkillsChanged(stack.active))
        started = {"person": "The user started", "file": "A file is attached, which started"}
        who = started.get(activated.request.by, "The settings started")
        branch.emit(Steered(_note(f"{who} the skill {activated.request.skill}.\n{activated.instructions}")))
        for note in activated.notes:
            if not note.hidden:
                branch.emit(Notice(note.text, "warning" if note.kind == "warning" else "info"))

    async def _end(self, change: SkillChange, branch: Branch) -> None:
        stack = self.stack(branch)
        ended = ", ".join(skill.id for skill in stack.end(change.id))
        branch.emit(SkillsChanged(stack.active))
        branch.emit(Steered(_note(f"The user ended the skill {ended}. Its instructions hold no longer.")))
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
    """Yield the texts that may contain the instructions."""
    mark = f'activation="{active.activation}"'
    for block in message.blocks if message.role == "user" else ():
        text = block.content if isinstance(block, ToolOutput) else block.text if isinstance(block, Text) else ""
        if mark in text:
            yield text


class SkillList:
    """The skills of one conversation, for faces."""

    def __init__(self, skills: ActiveSkills) -> None:
        self._skills = skills

    def lines(self) -> Sequence[SkillLine]:
        found = self._skills.catalog.look()
        ranked = sorted(found, key=lambda skill: (skill.shadowed, skill.id))
        return [self._line(skill) for skill in ranked]

    def body(self, id: str) -> str:
        return body_of(self._skills.found(id), self._skills.catalog.ingress)

    def check(self, id: str) -> tuple[Sequence[str], Sequence[str]]:
        skill = self._skills.catalog.get(id)
        if skill is None:
            raise UsageError(f"There is no skill {id!r}.", "See ba skills list.")
        report = check(skill.folder)
        return report.errors, report.warnings

    def activate(self, id: str, parameters: str = "") -> None:
        skill = self._skills.found(id)
        if skill.head.for_models:
            why = f"The skill {skill.id} is started by models only (user-invocable: false in its SKILL.md)."
            raise UsageError(why, "Ask for what it does.")
        words = parameters.strip()
        if len(words) > MAX_PARAMETER_CHARS:
            raise UsageError(
                f"The parameters of {skill.id} have {len(words):,} characters; at most {MAX_PARAMETER_CHARS:,} go.",
                "Put them into a file, and name the file.",
            )
        waiting = self._skills.waiting()
        if skill.id not in waiting:
            # Refuse now if possible; starting an active skill again replaces it.
            stack = SkillStack(self._skills.active())
            if skill.id not in stack:
                stack.check(skill.id, by="person")
        self._skills.queue(SkillChange(skill.id, request=ActivationRequest(skill.id, "person", words)))

    def attach(self, names: Sequence[str]) -> Sequence[str]:
        if not self._skills.choices.auto_load or not self._skills.choices.enabled:
            return ()
        wanted = dict.fromkeys(id for name in names for id in self.handlers(name))
        begun = [
            id for id in wanted if id not in SkillStack(self._skills.active()) and id not in self._skills.waiting()
        ]
        for id in begun:
            self._skills.queue(SkillChange(id, request=ActivationRequest(id, "file")))
        return begun

    def handlers(self, name: str) -> Sequence[str]:
        if not self._skills.choices.enabled:
            return ()
        plain, choices = name.lower(), self._skills.choices
        usable = [skill.id for skill in self._skills.catalog.usable()]
        return [id for id in usable if any(plain.endswith(f".{kind}") for kind in choices.of(id).file_types)]

    def end(self, id: str) -> None:
        if id not in SkillStack(self._skills.active()) and id not in self._skills.waiting():
            raise UsageError(f"The skill {id} is not active.", "See which are: /skills.")
        self._skills.queue(SkillChange(id, ends=True))

    def switch(self, id: str, *, on: bool) -> None:
        self._skills.switched[self._skills.found(id).id] = on

    def _line(self, skill: Skill) -> SkillLine:
        head = skill.head
        usable = not head.trouble
        modifier = self._skills.modifier(skill)
        unknown = ", ".join(modifier.unknown)
        tools = modifier.tools
        confirmed = usable and bool(tools) and self._skills.confirmed.has(skill.id, digest_of(skill), tools)
        return SkillLine(
            skill.id,
            self._state(skill),
            skill.source,
            self._skills.choices.of(skill.id).description or head.description,
            skill.tokens,
            head.trouble,
            (*skill.warnings, *([f"allowed-tools: {NOT_HERE}: {unknown}"] if unknown else [])),
            str(skill.folder),
            tuple(file.name for file in files_of(skill)) if usable else (),
            modifier.tools,
            modifier.model,
            confirmed,
            head.for_models,
        )

    def _state(self, skill: Skill) -> SkillState:
        if skill.head.trouble:
            return "broken"
        if skill.shadowed:
            return "shadowed"
        if skill.id in self._skills.waiting():
            return "waiting"
        if skill.id in SkillStack(self._skills.active()):
            return "active"
        return "on" if self._skills.choices.enabled and self._skills.offered(skill) else "off"
