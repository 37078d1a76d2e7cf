"""A second parser, tree-sitter's bash grammar: it must find no command that the first one missed, and splits lists.

A list (``a && b; c``) is split so that each command can run in its own profile. Each piece is judged again, so a wrong
split can only cause a question.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from tree_sitter import Node, Parser, Query


# Shell keywords that the grammar treats as programs.
_WORDS = frozenset({"time", "coproc"})


def unseen(command: str, programs: AbstractSet[str]) -> str:
    """Return the first command name that the grammar finds and ``programs``, as written, lack; empty for none."""
    from tree_sitter import QueryCursor  # noqa: PLC0415 - only a command that is judged needs it

    parser, query = _grammar()
    root = parser.parse(command.encode()).root_node
    if root.has_error:
        return ""
    for node in QueryCursor(query).captures(root).get("name", ()):
        name = (node.text or b"").decode()
        if name not in programs and name not in _WORDS:
            return name
    return ""


def tree(command: bytes) -> Node:
    """Return the root of the grammar's syntax tree."""
    return _grammar()[0].parse(command).root_node


@cache
def _grammar() -> tuple[Parser, Query]:
    import tree_sitter_bash  # noqa: PLC0415 - 20 ms, and only a command that is judged needs it
    from tree_sitter import Language, Parser, Query  # noqa: PLC0415

    language = Language(tree_sitter_bash.language())
    return Parser(language), Query(language, "(command_name) @name")


MOST_LINKS = 12
KINDS = frozenset({"command", "pipeline", "redirected_statement", "test_command"})
STATE = frozenset({
    "set", "export", "declare", "typeset", "readonly", "local", "shopt", "alias", "unalias", "trap", "source", ".",
    "unset", "umask", "ulimit", "exec", "exit", "return", "read", "mapfile", "readarray", "wait", "pushd", "popd",
    "dirs", "eval", "let", "enable", "hash", "bind", "time", "coproc", "getopts", "shift", "break", "continue",
    "builtin", "command", "fg", "bg", "jobs", "disown",
})  # fmt: skip
"""Programs that change the shell for later commands, or query it about earlier ones."""
_GAP = regex(rb"[ \t]*(?:&&|[;\n])[ \t\n]*")
_EARLIER = regex(rb"\$[?!_$]|\$\{[?!_$]|<<|\(\(|~[-+]|OLDPWD|\bprintf\b.*-v|\{\w+\}[<>]")
"""Text that leaves something for a later command, or uses what an earlier one left."""


@frozen
class ChainLink:
    """One command or pipeline of a list. ``joined``: it runs only if the previous one succeeded."""

    text: str
    joined: bool = False


def links(command: str) -> tuple[ChainLink, ...]:
    """Return the commands of a list one by one; empty if splitting would change their meaning."""
    raw = command.strip().encode()
    if _EARLIER.search(raw):
        return ()
    root = tree(raw)
    if root.has_error or any(name not in os.environ for name in _variables(root)):
        return ()
    found: list[ChainLink] = []
    end = 0
    for node in _leaves(root):
        gap = raw[end : node.start_byte]
        if node.type not in KINDS or (found and not _GAP.fullmatch(gap)) or (not found and gap) or _is_state(node):
            return ()
        found.append(ChainLink((node.text or b"").decode(), joined=b"&&" in gap))
        end = node.end_byte
    rest = raw[end:].strip(b"; \t\n")
    return tuple(found) if 1 < len(found) <= MOST_LINKS and not rest else ()


def _variables(root: Node) -> Iterator[str]:
    """Yield the names of variables in words. A variable that is not in the environment was set by the list itself."""
    todo = [root]
    while todo:
        node = todo.pop()
        if node.type == "variable_name":
            yield (node.text or b"").decode()
        todo += node.named_children


def _leaves(node: Node) -> Iterator[Node]:
    for child in node.named_children:
        if child.type == "list":
            yield from _leaves(child)
        else:
            yield child


def _is_state(node: Node) -> bool:
    """Return whether part of it concerns the shell itself instead of a program."""
    if node.type in {"variable_assignment", "declaration_command", "unset_command"}:
        return True
    if node.type == "command_name" and (node.text or b"").decode() in STATE:
        return True
    return any(map(_is_state, node.named_children)) if node.type != "command_substitution" else False


def folder_after(text: str, folder: Path) -> Path | None:
    """Return the shell's folder after ``text``, a ``cd`` to one plain folder; None if it is unclear."""
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    if len(words) != 2 or words[1].startswith(("-", "~")) or set(words[1]) & set("$`*?["):
        return None
    place = Path(os.path.realpath(folder / words[1]))
    return place if place.is_dir() else None
