"""The activation stack: which skills are active, the outermost first. A call stack, not a history; pure values.

It lives in the transcript; what is put before a model when it changes is ``prompt``'s business.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager

from ba_tui.core.errors import UsageError
from ba_tui.core.work import ActiveSkill

MAX_DEPTH = 3
ARROW = " → "


class SkillRefused(UsageError):
    """A skill can't be started or ended now; the message says why, with the whole path where that matters."""


class SkillStack:
    """``active`` is what the transcript folds. Skills that a setting started do not count as depth."""

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
        """The active skills in the order they were started in, as one line."""
        return ARROW.join([*(skill.id for skill in self.active), *more])

    def check(self, id: str, *, by: str = "model") -> None:
        """Raises SkillRefused when ``id`` can't be started on top: it is active already, or the stack is full."""
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
        """Put ``skill`` on top. Raises SkillRefused as ``check``."""
        self.check(skill.id, by=skill.by)
        self.active = (*self.active, skill)

    def pop(self, activation: str) -> ActiveSkill:
        """Take the top off, which must be ``activation``. Raises SkillRefused when it is another."""
        top = self.top
        if top is None:
            raise SkillRefused("No skill is active.", "There is nothing to end.")
        if top.activation != activation:
            other = next((skill.id for skill in self.active if skill.activation == activation), "another skill")
            raise SkillRefused(f"{top.id} was started last, so {other} can't end before it.", f"Active: {self.path()}.")
        self.active = self.active[:-1]
        return top

    def end(self, id: str = "") -> tuple[ActiveSkill, ...]:
        """End ``id`` (the top when it is empty) and all that was started within it; what ended, the top first.

        Raises:
            SkillRefused: it is not active.
        """
        if self.top is None:
            raise SkillRefused("No skill is active.", "There is nothing to end.")
        wanted = id or self.top.id
        at = next((index for index, skill in enumerate(self.active) if skill.id == wanted), None)
        if at is None:
            raise SkillRefused(f"{wanted} is not active.", f"Active: {self.path()}.")
        # A skill that a setting started belongs to no other, and stays.
        ended = [skill for index, skill in enumerate(self.active) if index == at or (index > at and skill.by != "core")]
        self.active = tuple(skill for skill in self.active if skill not in ended)
        return tuple(reversed(ended))

    @contextmanager
    def within(self, skill: ActiveSkill) -> Generator[None]:
        """``skill`` is on top while the block runs. What was started within it and not ended is refused at the end,
        and ends with it when the block fails.

        Raises:
            SkillRefused: as ``push`` and ``pop``.
        """
        self.push(skill)
        try:
            yield
        except BaseException:
            if skill.id in self:
                self.end(skill.id)
            raise
        self.pop(skill.activation)
