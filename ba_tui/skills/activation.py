"""The values of starting a skill: the request, the result with its notes, the modifier that holds while it is active.

How they come about stands in ``active``.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import field
from typing import Literal, TypeAlias

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.core.work import ActiveSkill
from ba_tui.skills.content import ContentLevel

ActivatedBy: TypeAlias = Literal["model", "person", "file", "core"]
MAX_PARAMETER_CHARS = 8_000


def _short_id() -> str:
    return uuid.uuid4().hex[:12]


@frozen
class ActivationRequest:
    """``chain`` is the stack that the skill is to join, ``conversation`` and ``id`` name session and activation."""

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
    """What holds while a skill is active. ``tools`` are rules: what the person need not be asked about once they
    confirmed the skill, and with ``exclusive`` all that may be used. ``only_person``: no model may start it.
    ``unknown``: rules it wants that can allow nothing here."""

    tools: tuple[str, ...] = ()
    exclusive: bool = False
    model: str = ""
    only_person: bool = False
    unknown: tuple[str, ...] = ()


@frozen
class ActivationNote:
    """``metadata`` says that and why a skill is active, ``instruction`` what to do, ``permissions`` what it may,
    ``warning`` what is odd of it. ``hidden`` ones are for the model only, the others for the person."""

    kind: Literal["metadata", "instruction", "permissions", "warning"]
    text: str
    hidden: bool


@frozen
class Activated:
    """``active`` is None when the request does not change what is active: level 1, or more of an active skill."""

    request: ActivationRequest
    notes: tuple[ActivationNote, ...]
    modifier: Modifier = field(default_factory=Modifier)
    active: ActiveSkill | None = None

    @property
    def instructions(self) -> str:
        """What the model is given."""
        return "\n\n".join(note.text for note in self.notes if note.hidden)


MARK = regex(r'<skill id="([^"]*)" activation="')
"""What instructions of a skill begin with; the group is its id."""


def framed(skill: ActiveSkill, text: str) -> str:
    """Instructions with marks around them, so that it can be told later whether all of them are still there."""
    return f'<skill id="{skill.id}" activation="{skill.activation}" size="{len(text)}">\n{text}\n</skill>'


def whole_in(text: str, skill: ActiveSkill) -> bool:
    """Whether ``text`` holds the instructions of just this activation from beginning to end."""
    for found in re.finditer(rf'<skill id="[^"]*" activation="{re.escape(skill.activation)}" size="(\d+)">\n', text):
        end = found.end() + int(found.group(1))
        if text.startswith("\n</skill>", end):
            return True
    return False
