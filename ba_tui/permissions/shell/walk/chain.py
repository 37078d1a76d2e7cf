"""Takes a list of commands apart (``a && b; c``), so that each one can run in a profile of its own.

Whoever runs the pieces has each of them judged again, so a piece that was misread is a question and no more.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.permissions.shell.witness import tree

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_LINKS = 12
KINDS = frozenset({"command", "pipeline", "redirected_statement", "test_command"})
STATE = frozenset({
    "set", "export", "declare", "typeset", "readonly", "local", "shopt", "alias", "unalias", "trap", "source", ".",
    "unset", "umask", "ulimit", "exec", "exit", "return", "read", "mapfile", "readarray", "wait", "pushd", "popd",
    "dirs", "eval", "let", "enable", "hash", "bind", "time", "coproc", "getopts", "shift", "break", "continue",
    "builtin", "command", "fg", "bg", "jobs", "disown",
})  # fmt: skip
"""Programs that change the shell for what comes after them, or ask it about what came before."""
_GAP = regex(rb"[ \t]*(?:&&|[;\n])[ \t\n]*")
_EARLIER = regex(rb"\$[?!_$]|\$\{[?!_$]|<<|\(\(|~[-+]|OLDPWD|\bprintf\b.*-v|\{\w+\}[<>]")
"""What leaves something behind for a later command, or is made of what an earlier one left."""


@frozen
class ChainLink:
    """One command or pipeline of a list. ``joined``: it runs only when the one before it succeeded."""

    text: str
    joined: bool = False


def links(command: str) -> tuple[ChainLink, ...]:
    """The commands of a list one by one; empty where they can't be run one by one without a change of meaning."""
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
    """The names of variables that the words are made of. What is in no environment was set by the list itself."""
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
    """Whether something in it is about the shell itself, not about a program."""
    if node.type in {"variable_assignment", "declaration_command", "unset_command"}:
        return True
    if node.type == "command_name" and (node.text or b"").decode() in STATE:
        return True
    return any(map(_is_state, node.named_children)) if node.type != "command_substitution" else False


def folder_after(text: str, folder: Path) -> Path | None:
    """Where the shell is after ``text``, a ``cd`` to one plain folder; None when that can't be told."""
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    if len(words) != 2 or words[1].startswith(("-", "~")) or set(words[1]) & set("$`*?["):
        return None
    place = Path(os.path.realpath(folder / words[1]))
    return place if place.is_dir() else None
