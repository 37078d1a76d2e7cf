"""Skills as faces see them: a line for each, and what a person can do with them. A protocol and a value only.

Where skills are found and how one becomes active is the skills room's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from ba_tui.core.values import frozen

SkillState: TypeAlias = Literal["active", "waiting", "on", "off", "broken", "shadowed"]
"""``waiting``: starts with the next request; ``off``: the model is not told of it, a person can start it all the same;
``shadowed``: another of that id counts."""


@frozen
class SkillLine:
    """A skill as lists show it. ``source`` is ``bundled``, ``user`` or ``project``, ``path`` its folder, ``tokens`` the
    estimated size of its instructions. ``trouble`` says why it is broken, with the line; ``warnings`` what is odd.

    ``files``: what lies beside SKILL.md, from its folder. ``tools``: what its front matter asks for, as rules.
    """

    id: str
    state: SkillState
    source: str = ""
    description: str = ""
    tokens: int = 0
    trouble: str = ""
    warnings: tuple[str, ...] = ()
    path: str = ""
    files: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    model: str = ""
    confirmed: bool = False
    """Whether the person let it use ``tools`` without being asked, with just this content."""
    for_models: bool = False
    """Whether only models may start it."""


class Skills(Protocol):
    """Every skill that was found, and which of them are active in this conversation."""

    def lines(self) -> Sequence[SkillLine]:
        """By name, those that count first. Reads files: call it off the loop."""
        ...

    def body(self, id: str) -> str:
        """The instructions as Markdown. Reads a file: call it off the loop. Raises UsageError."""
        ...

    def check(self, id: str) -> tuple[Sequence[str], Sequence[str]]:
        """Errors and warnings by the rules of the format. Reads files: call it off the loop. Raises UsageError."""
        ...

    def activate(self, id: str, parameters: str = "") -> None:
        """The person starts it: it joins before the next request. Raises UsageError when there is no such skill."""
        ...

    def attach(self, names: Sequence[str]) -> Sequence[str]:
        """Files were attached: skills for such files join before the next request. Says which, by id."""
        ...

    def handlers(self, name: str) -> Sequence[str]:
        """The ids of the skills that are made for files with such a name."""
        ...

    def end(self, id: str) -> None:
        """The person ends it, and what was started within it. Raises UsageError when it is not active."""
        ...

    def switch(self, id: str, *, on: bool) -> None:
        """Whether the model may start it, for as long as the conversation is open. Raises UsageError."""
        ...
