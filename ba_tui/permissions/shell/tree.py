"""The tree of a shell command as written: simple commands, compounds, pipelines, chains, lists. Values only.

``parser`` builds it, ``walk.walker`` walks it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ba_tui.permissions.shell.tokens import Token


@dataclass(slots=True)
class Assignment:
    """``name=value``. ``items`` are the words of a list."""

    name: str
    value: Token
    items: list[Token] | None = None
    append: bool = False
    indexed: bool = False


@dataclass(slots=True)
class Redirection:
    """``kind`` copy: of a descriptor, no file. here: ``body`` is what the command reads."""

    kind: Literal["read", "write", "copy", "here"]
    target: Token
    descriptor: str = ""
    body: Token | None = None


@dataclass(slots=True)
class SimpleCommand:
    """A simple command as written."""

    start: int
    end: int = 0
    assignments: list[Assignment] = field(default_factory=list[Assignment])
    words: list[Token] = field(default_factory=list[Token])
    redirects: list[Redirection] = field(default_factory=list[Redirection])
    source: str = ""


@dataclass(slots=True)
class Compound:
    """A compound command: its inner lists in order, the words it evaluates, its redirections. sink: ``>(…)``."""

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
    """Commands joined by ``&&`` and ``||``; ``operators[i]`` stands before ``items[i + 1]``."""

    items: list[Node]
    operators: list[str]
    background: bool = False


@dataclass(slots=True)
class CommandList:
    """Chains one after the other."""

    items: list[Chain] = field(default_factory=list[Chain])


Node = SimpleCommand | Compound | Pipeline | Chain | CommandList


def has_group(node: Node) -> bool:
    """Whether a group in parentheses stands in ``node``; substitutions are none."""
    match node:
        case Compound(kind=kind, bodies=bodies):
            return kind == "subshell" or any(map(has_group, bodies))
        case Pipeline(items=items) | Chain(items=items) | CommandList(items=items):
            return any(map(has_group, items))
        case _:
            return False
