"""Lines of a file, prose and shell commands as rows, coloured by pygments. Slow for long texts: call in a thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from ba_tui.core.results import Prose, Source
from ba_tui.faces.tui.inspector.rows import GridRow, Piece, line, text_rows

if TYPE_CHECKING:
    from pygments.lexer import Lexer

COLOURED = 120_000
"""Characters up to which colours are worth their time."""


def source_rows(display: Source, *, colours: bool = True, reveal: bool = False) -> list[GridRow]:
    """Numbered lines; the file's name decides the language."""
    rows = text_rows(display.text.removesuffix("\n"), reveal=reveal)
    if colours:
        rows = coloured(rows, _lexer_for(display.path))
    digits = len(str(display.start + len(rows) - 1))
    return [line(*row[0].pieces, gutter=f"{number:>{digits}}  ") for number, row in enumerate(rows, display.start)]


def prose_rows(display: Prose, *, colours: bool = True, reveal: bool = False) -> list[GridRow]:
    """Text as it is; Markdown keeps its signs and is coloured."""
    rows = text_rows(display.text.removesuffix("\n"), reveal=reveal)
    return coloured(rows, "markdown") if display.markdown and colours else rows


def command_rows(command: str, *, colours: bool = True) -> list[GridRow]:
    """A shell command, whole, as it would run."""
    rows = text_rows(command, reveal=True)
    if colours:
        rows = coloured(rows, "bash")
    return [line(*row[0].pieces, gutter="  " if index else "$ ") for index, row in enumerate(rows)]


def _lexer_for(path: str) -> str:
    from pygments.lexers import find_lexer_class_for_filename  # noqa: PLC0415 - pygments only when something is shown

    found = find_lexer_class_for_filename(path)
    return found.aliases[0] if found and found.aliases else "text"


def coloured(plain: Sequence[GridRow], language: str) -> list[GridRow]:
    """The same rows with the roles of their tokens; as they were when they are too long to colour."""
    texts = [row[0].text for row in plain]
    if language == "text" or sum(map(len, texts)) > COLOURED:
        return list(plain)
    import pygments.lexers  # noqa: PLC0415 - pygments only when something is shown

    make = cast("Callable[..., Lexer]", pygments.lexers.get_lexer_by_name)
    lexer = make(language, stripnl=False)
    rows: list[list[Piece]] = [[]]
    for kind, value in lexer.get_tokens("\n".join(texts) + "\n"):
        role = _role(str(kind))
        for index, part in enumerate(value.split("\n")):
            if index:
                rows.append([])
            if part:
                rows[-1].append((part, role))
    rows.pop()
    # A lexer may drop or add characters; what is shown must be the text and nothing else.
    same = ["".join(text for text, _ in row) for row in rows] == texts
    return [line(*pieces) for pieces in rows] if same else list(plain)


ROLE_OF_TOKEN = (
    ("Token.Comment", "comment"),
    ("Token.Keyword", "keyword"),
    ("Token.Operator.Word", "keyword"),
    ("Token.Name.Builtin", "keyword"),
    ("Token.Literal.String", "string"),
    ("Token.Literal.Number", "number"),
    ("Token.Name.Function", "name"),
    ("Token.Name.Class", "name"),
    ("Token.Name.Decorator", "name"),
    ("Token.Name.Variable", "name"),
    ("Token.Name.Tag", "name"),
    ("Token.Generic.Heading", "heading"),
    ("Token.Generic.Subheading", "heading"),
    ("Token.Generic.Strong", "heading"),
)


def _role(token: str) -> str:
    return next((role for prefix, role in ROLE_OF_TOKEN if token.startswith(prefix)), "")
