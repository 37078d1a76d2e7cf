"""A second reader of shell commands: tree-sitter's bash grammar must see no command that the first did not.

The first reader stands in ``parser``; where the grammar finds an error, the first is believed.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from tree_sitter import Node, Parser, Query

# Words of the shell that the grammar takes for programs.
_WORDS = frozenset({"time", "coproc"})


def unseen(command: str, programs: AbstractSet[str]) -> str:
    """The first word of a command that the grammar finds and ``programs``, as written, lack; "" when there is none."""
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
    """The root of what the grammar makes of ``command``."""
    return _grammar()[0].parse(command).root_node


@cache
def _grammar() -> tuple[Parser, Query]:
    import tree_sitter_bash  # noqa: PLC0415 - 20 ms, and only a command that is judged needs it
    from tree_sitter import Language, Parser, Query  # noqa: PLC0415

    language = Language(tree_sitter_bash.language())
    return Parser(language), Query(language, "(command_name) @name")
