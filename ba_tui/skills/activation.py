"""The values of activating a skill (request, result, notes, modifier), and the stack of active skills, which the
transcript stores."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from dataclasses import field
from typing import Literal, TypeAlias

from ba_tui.core.errors import UsageError
from ba_tui.core.results import ActiveSkill
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.skills.content import ContentLevel

ActivatedBy: TypeAlias = Literal["model", "person", "file", "core"]
MAX_PARAMETER_CHARS = 8_000


def _short_id() -> str:
    return uuid.uuid4().hex[:12]


@frozen
class ActivationRequest:
    """A request to activate a skill. ``chain``: the stack of active skills; ``conversation`` and ``id`` identify
    session and activation."""

    skill: str
    by: ActivatedBy = "model"
    parameters: str = ""
    level: ContentLevel = 2
    chain: tuple[ActiveSkill, ...] = ()
    conversation: str = ""
    id: str = field(default_factory=_short_id)

    @property
    def depth(self) -> int:
        return len(self.chain)


@frozen
class Modifier:
    """The effects of an active skill. ``tools``: rules that need no question once the user confirmed the skill, and
    with ``exclusive`` the only allowed ones. ``unknown``: rules that allow nothing here."""

    tools: tuple[str, ...] = ()
    exclusive: bool = False
    model: str = ""
    unknown: tuple[str, ...] = ()


@frozen
class ActivationNote:
    """A note on an activation: ``metadata`` (why the skill is active), ``instruction``, ``permissions`` or
    ``warning``. ``hidden`` notes are for the model only, others for the user."""

    kind: Literal["metadata", "instruction", "permissions", "warning"]
    text: str
    hidden: bool


@frozen
class SkillActivation:
    """The result of an activation. ``active`` is None if the stack does not change: level 1, or more of an active
    skill."""

    request: ActivationRequest
    notes: tuple[ActivationNote, ...]
    active: ActiveSkill | None = None

    @property
    def instructions(self) -> str:
        """Return the text for the model."""
        return "\n\n".join(note.text for note in self.notes if note.hidden)


MARK = regex(r'<skill id="([^"]*)" activation="')
"""The beginning of a skill's instructions; the group is the skill's id."""


def framed(skill: ActiveSkill, text: str) -> str:
    """Return instructions between marks, by which ``whole_in`` finds them."""
    return f'<skill id="{skill.id}" activation="{skill.activation}" size="{len(text)}">\n{text}\n</skill>'


def whole_in(text: str, skill: ActiveSkill) -> bool:
    """Return whether ``text`` has the complete instructions of this activation."""
    for found in re.finditer(rf'<skill id="[^"]*" activation="{re.escape(skill.activation)}" size="(\d+)">\n', text):
        end = found.end() + int(found.group(1))
        if text.startswith("\n</skill>", end):
            return True
    return False


MAX_DEPTH = 3
ARROW = " → "


class SkillRefused(UsageError):
    """A skill can't be started or ended now; the message has the reason, and the stack where needed."""


class SkillStack:
    """The active skills, the outermost first. Skills that a setting started do not count towards the depth."""

    def __init__(self, active: Iterable[ActiveSkill] = ()) -> None:
        self.active = tuple(active)

    def __contains__(self, id: str) -> bool:
        return any(skill.id == id for skill in self.active)

    @property
    def top(self) -> ActiveSkill | None:
        return self.active[-1] if self.active else None

    @property
    def depth(self) -> int:
        return sum(skill.by != "core" for skill in self.active)

    def path(self, *more: str) -> str:
        """Return the active skills in the order of their start, as one line."""
        return ARROW.join([*(skill.id for skill in self.active), *more])

    def check(self, id: str, *, by: str = "model") -> None:
        """Raise SkillRefused if ``id`` is already active or the stack is full."""
        if id in self:
            first = next(index for index, skill in enumerate(self.active) if skill.id == id)
            cycle = ARROW.join([*(skill.id for skill in self.active[first:]), id])
            raise SkillRefused(
                f"{id} is already active, so this would be a cycle: {cycle}.",
                f"Its instructions hold still. Follow them, or end it first: end_skill {id}.",
            )
        if by != "core" and self.depth >= MAX_DEPTH:
            raise SkillRefused(
                f"At most {MAX_DEPTH} skills can be active at a time: {self.path(id)}.",
                f"End one that is done with: {self.active[-1].id} is the newest.",
            )

    def push(self, skill: ActiveSkill) -> None:
        """Put ``skill`` on top. Raises SkillRefused as ``check`` does."""
        self.check(skill.id, by=skill.by)
        self.active = (*self.active, skill)

    def end(self, id: str = "") -> tuple[ActiveSkill, ...]:
        """End ``id`` (empty: the top) and the skills started within it; return them, the top first.

        Raises:
            SkillRefused: it is not active.
        """
        if self.top is None:
            raise SkillRefused("No skill is active.", "There is nothing to end.")
        wanted = id or self.top.id
        at = next((index for index, skill in enumerate(self.active) if skill.id == wanted), None)
        if at is None:
            raise SkillRefused(f"{wanted} is not active.", f"Active: {self.path()}.")
        # A skill that a setting started stays active.
        ended = [skill for index, skill in enumerate(self.active) if index == at or (index > at and skill.by != "core")]
        self.active = tuple(skill for skill in self.active if skill not in ended)
        return tuple(reversed(ended))
