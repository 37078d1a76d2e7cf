"""The list of skills in the system prompt, short enough for any number of them, and the search for the rest."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.messages import clean_text
from ba_tui.core.text.ranking import matching
from ba_tui.core.values import frozen
from ba_tui.ingress import Owner
from ba_tui.skills.active import ActiveSkills
from ba_tui.skills.catalog import Skill

OWN_BYTES = 3_200
"""Bytes for the skills that do not ship with ba: with them a first request stays below 16 KB."""
WHOLE_CHARS = 400
"""Characters of a description that counts as whole."""
LEAST_CHARS = 24
"""Characters below which a description says nothing."""
RECENT = 8
"""Skills used last whose descriptions stay whole."""
MORE_BYTES = 90
"""Bytes for the line about those that are not listed."""
SOURCES: Sequence[Owner] = ("bundled", "user", "project")
HEADING = """\
# Skills
Instructions for particular work. When one fits what is asked, call activate_skill with its name before you begin."""


@frozen
class SkillLine:
    """A skill that a model may start, and what is said of it, on one line."""

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
class Catalogue:
    """``shortened`` are the skills whose descriptions the text does not hold whole, ``left`` how many it leaves out."""

    text: str = ""
    shortened: tuple[SkillLine, ...] = ()
    left: int = 0


def catalogue(skills: ActiveSkills, recent: Sequence[str] = (), sources: Sequence[Owner] = SOURCES) -> Catalogue:
    """What models are told of, the same for the same skills. Those that ship with ba and the ``recent`` ones are whole,
    the others as long as all of them fit. Blocks."""
    lines = [line for line in offered(skills) if line.skill.source in sources]
    if not lines:
        return Catalogue()
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
    return Catalogue("\n".join([HEADING, *listed, *more]), shortened, left)


def offered(skills: ActiveSkills) -> Sequence[SkillLine]:
    """All skills that a model may start. Blocks."""
    if not skills.choices.enabled:
        return ()
    clean = skills.catalog.ingress.clean
    found = [skill for skill in skills.catalog.usable() if skills.offered(skill)]
    # Heads are clean already; what a skills.yaml says is not.
    said = {skill.id: skills.choices.of(skill.id).description for skill in found}
    return [SkillLine(skill, _one_line(clean(said[skill.id]) or skill.head.description)) for skill in found]


def fitting(words: str, lines: Sequence[SkillLine], most: int, least: float = 0) -> Sequence[SkillLine]:
    """The skills that share words with a prompt or a query, the best first."""
    return matching(words, lines, lambda line: (line.skill.id, line.description), least)[:most]


def _room(lines: Sequence[SkillLine], most: int) -> int:
    """Characters that each description may have so that all lines take ``most`` bytes; 0 where only names fit."""
    low, high = LEAST_CHARS - 1, WHOLE_CHARS
    while low < high:
        middle = (low + high + 1) // 2
        if _size([line.listed(middle) for line in lines]) <= most:
            low = middle
        else:
            high = middle - 1
    return low if low >= LEAST_CHARS else 0


def _left(lines: Sequence[SkillLine], room: int, most: int) -> int:
    """How many of the last lines do not fit even without descriptions."""
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
