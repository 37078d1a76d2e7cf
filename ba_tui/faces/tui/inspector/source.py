"""Rows of files, prose, commands with output, and todo lists. Slow for long texts: call it in a thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from rich.style import Style

from ba_tui.core.results import CommandText, Prose, Source, Todos
from ba_tui.core.text.ansi import PLAIN, Ink, inked_lines
from ba_tui.faces.tui.inspector.rows import GridRow, Piece, line, text_rows, visible
from ba_tui.faces.tui.transcript.lines import ink_style

if TYPE_CHECKING:
    from pygments.lexer import Lexer


COLOURED = 120_000
"""Characters up to which colours are worth their time."""


def source_rows(display: Source, *, colours: bool = True, reveal: bool = False) -> list[GridRow]:
    """Return numbered lines; the file's name decides the language."""
    rows = text_rows(display.text.removesuffix("\n"), reveal=reveal)
    if colours:
        rows = coloured(rows, _lexer_for(display.path))
    digits = len(str(display.start + len(rows) - 1))
    return [line(*row[0].pieces, gutter=f"{number:>{digits}}  ") for number, row in enumerate(rows, display.start)]


def prose_rows(display: Prose, *, colours: bool = True, reveal: bool = False) -> list[GridRow]:
    """Return rows of text; Markdown keeps its signs and is coloured."""
    rows = text_rows(display.text.removesuffix("\n"), reveal=reveal)
    return coloured(rows, "markdown") if display.markdown and colours else rows


def command_rows(command: str, *, colours: bool = True) -> list[GridRow]:
    """Return a shell command, whole, as it would run."""
    rows = text_rows(command, reveal=True)
    if colours:
        rows = coloured(rows, "bash")
    return [line(*row[0].pieces, gutter="  " if index else "$ ") for index, row in enumerate(rows)]


def _lexer_for(path: str) -> str:
    from pygments.lexers import find_lexer_class_for_filename  # noqa: PLC0415 - pygments only when something is shown

    found = find_lexer_class_for_filename(path)
    return found.aliases[0] if found and found.aliases else "text"


def coloured(plain: Sequence[GridRow], language: str) -> list[GridRow]:
    """Return the same rows with the roles of their tokens; as they were when they are too long to colour."""
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
    # A lexer may drop or add characters; only unchanged text may be shown.
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


# Output of commands is foreign text: only colour sequences survive.


def output_rows(text: str) -> list[GridRow]:
    """Return rows of printed text with its colours."""
    return [
        line(*((words.replace("\n", "␤").expandtabs(8), _style(ink)) for words, ink in pieces))
        for pieces in inked_lines(text)
    ]


def folder_row(cwd: str) -> GridRow:
    """Return where a command runs."""
    return line((f"in {'the project folder' if cwd == '.' else visible(cwd)}", "muted"), gutter="  ")


def terminal_rows(display: CommandText) -> list[GridRow]:
    """Return the command, its folder, the output and the exit code."""
    rows = command_rows(display.command)
    if display.cwd:
        rows.append(folder_row(display.cwd))
    if display.output:
        rows += [line(), *output_rows(display.output)]
    elif display.exit_code is not None:
        rows += [line(), line(("No output.", "muted"))]
    if display.exit_code is not None:
        rows += [line(), line((f"exit {display.exit_code}", "error" if display.broke else "plus"))]
    return rows


def _style(ink: Ink) -> str | Style:
    return "" if ink == PLAIN else ink_style(ink)


MARKS = {"pending": ("[ ] ", ""), "in_progress": ("[>] ", "heading"), "completed": ("[x] ", "muted")}
BROKEN = ("[!] ", "error")


def todo_rows(display: Todos) -> list[GridRow]:
    """Return a row for each item with its state as a sign; urgent items are named."""
    rows: list[GridRow] = []
    for item in display.items:
        mark, role = BROKEN if item.broken else MARKS[item.status]
        urgent = [(" (high)", "warning")] if item.priority == "high" and not item.done else []
        rows.append(line((visible(item.content), role), *urgent, gutter=mark))
    return rows or [line(("No todos.", "muted"))]


def todo_text(display: Todos) -> str:
    """Return the list as Markdown, for the clipboard."""
    return "\n".join(f"- [{'x' if item.done else ' '}] {item.content}" for item in display.items)
