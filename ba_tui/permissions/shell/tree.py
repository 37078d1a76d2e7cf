"""The syntax tree of a shell command: words, simple commands, compounds, pipelines, chains, lists. Values only.

``parser`` builds it, ``walker`` walks it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


class UnreadableCommand(Exception):
    """The command can't be parsed reliably; the message says why."""


@dataclass(slots=True)
class TokenPart:
    """A piece of a word: literal text, a variable's plain value, a number, or a part that is unknown before it runs."""

    kind: Literal["text", "variable", "number", "unknown"]
    text: str
    quoted: bool


# Commands have many words, and ``list[Part]()`` takes five times as long.
def _parts() -> list[TokenPart]:
    return []


def _runs() -> list[object]:
    return []


@dataclass(slots=True)
class Token:
    """A word as written: its pieces, the commands in its substitutions, and the pieces of ``${x:-…}`` (``behind``)."""

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
        """Return the text after quote removal; None if part of it is unknown before it runs."""
        if all(part.kind == "text" for part in self.parts):
            return "".join(part.text for part in self.parts)
        return None

    def bare(self) -> str | None:
        """Return the text if it is completely unquoted, so that it may be a keyword or a descriptor number."""
        if not self.parts:
            return None
        if len(self.parts) == 1 and self.parts[0].kind == "text" and not self.parts[0].quoted:
            return self.parts[0].text
        return None


@dataclass(slots=True)
class TokenFindings:
    """Findings of a parse at all depths.

    - ``counted``: variables used in arithmetic; ``counted_runs``: commands whose output is
    - ``sources``: the values assigned to variables; ``wild``: variables with unknown values
    - ``bound``: variables set by loops and expansions
    - ``lists``: list variables; ``declared``: those that a builtin would read as a list, with an unknown value
    - ``programs``: first words of commands as written
    - ``changed``: variables set by builtins, once per time
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


@dataclass(slots=True)
class VariableAssignment:
    """``name=value``. ``items``: the words of a list."""

    name: str
    value: Token
    items: list[Token] | None = None
    append: bool = False
    indexed: bool = False


@dataclass(slots=True)
class Redirection:
    """A redirection. ``kind`` copy duplicates a descriptor and opens no file; for here, ``body`` is the input."""

    kind: Literal["read", "write", "copy", "here"]
    target: Token
    descriptor: str = ""
    body: Token | None = None


@dataclass(slots=True)
class SimpleCommand:
    start: int
    end: int = 0
    assignments: list[VariableAssignment] = field(default_factory=list[VariableAssignment])
    words: list[Token] = field(default_factory=list[Token])
    redirects: list[Redirection] = field(default_factory=list[Redirection])
    source: str = ""


@dataclass(slots=True)
class Compound:
    """A compound command: its inner lists in order, its words, its redirections. Kind sink: ``>(…)``."""

    kind: Literal["group", "subshell", "loop", "branch", "function", "coproc", "time", "sink"]
    bodies: list[Node] = field(default_factory=list["Node"])
    words: list[Token] = field(default_factory=list[Token])
    redirects: list[Redirection] = field(default_factory=list[Redirection])
    name: str = ""


@dataclass(slots=True)
class Pipeline:
    """Commands joined by ``|``."""

    items: list[Node]


@dataclass(slots=True)
class Chain:
    """Commands joined by ``&&`` and ``||``; ``operators[i]`` precedes ``items[i + 1]``."""

    items: list[Node]
    operators: list[str]
    background: bool = False


@dataclass(slots=True)
class CommandList:
    """Consecutive chains."""

    items: list[Chain] = field(default_factory=list[Chain])


Node = SimpleCommand | Compound | Pipeline | Chain | CommandList


def has_group(node: Node) -> bool:
    """Return whether ``node`` contains a group in parentheses; substitutions don't count."""
    match node:
        case Compound(kind=kind, bodies=bodies):
            return kind == "subshell" or any(map(has_group, bodies))
        case Pipeline(items=items) | Chain(items=items) | CommandList(items=items):
            return any(map(has_group, items))
        case _:
            return False
