"""Words as written, what was found on the way, and the error of what cannot be read. Values only.

``words`` reads them, ``walk.word_values`` tells what they come to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


class UnreadableCommand(Exception):
    """The command cannot be read with certainty; the text says why."""


@dataclass(slots=True)
class TokenPart:
    """A piece of a word: literal text, a variable's plain value, a number, or something known only when it runs."""

    kind: Literal["text", "variable", "number", "unknown"]
    text: str
    quoted: bool


# There is a word for every few characters of a command, and ``list[Part]()`` takes five times as long.
def _parts() -> list[TokenPart]:
    return []


def _runs() -> list[object]:
    return []


@dataclass(slots=True)
class Token:
    """A word as written: its pieces, the commands that run to make it, and ``behind`` those in ``${x:-…}``."""

    start: int
    end: int = 0
    parts: list[TokenPart] = field(default_factory=_parts)
    runs: list[object] = field(default_factory=_runs)
    pattern: bool = False
    braces: bool = False
    raw: str = ""
    behind: list[TokenPart] = field(default_factory=_parts)

    def add(self, text: str, quoted: bool) -> None:
        """Append literal text."""
        if self.parts and self.parts[-1].kind == "text" and self.parts[-1].quoted == quoted:
            self.parts[-1].text += text
        else:
            self.parts.append(TokenPart("text", text, quoted))

    def literal(self) -> str | None:
        """The text after quote removal, None when some of it is known only when it runs."""
        if all(part.kind == "text" for part in self.parts):
            return "".join(part.text for part in self.parts)
        return None

    def bare(self) -> str | None:
        """The text when no character of it was quoted: what may be a keyword, a number of a descriptor."""
        if not self.parts:
            return None
        if len(self.parts) == 1 and self.parts[0].kind == "text" and not self.parts[0].quoted:
            return self.parts[0].text
        return None


@dataclass(slots=True)
class TokenFindings:
    """What is learnt on the way, for all depths.

    ``counted``: variables computed with, ``counted_runs`` the commands whose output is; ``sources``: what variables are
    set to, ``wild`` those set to who knows what; ``bound``: those set by loops and expansions; ``lists``: those that
    are lists, ``declared`` those given a value known only when it runs by a builtin that would read it as a list;
    ``programs``: first words of commands as written; ``changed``: variables that builtins set, each time.
    """

    counted: set[str] = field(default_factory=set[str])
    sources: dict[str, list[Token]] = field(default_factory=dict[str, list[Token]])
    counted_runs: list[object] = field(default_factory=list[object])
    wild: set[str] = field(default_factory=set[str])
    bound: set[str] = field(default_factory=set[str])
    lists: set[str] = field(default_factory=set[str])
    declared: set[str] = field(default_factory=set[str])
    programs: set[str] = field(default_factory=set[str])
    changed: list[str] = field(default_factory=list[str])
