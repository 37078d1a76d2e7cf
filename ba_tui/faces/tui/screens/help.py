"""F1: every command and every key, read from the table and from the bindings that are live."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual.widget import Widget

from ba_tui.faces.tui.commands import COMMANDS, Command
from ba_tui.faces.tui.screens.report import Report, ReportRow

if TYPE_CHECKING:
    from ba_tui.faces.tui.screens.chat import ChatScreen

WRITING = (
    ("Enter", "Send; while a turn runs, wait in the queue"),
    ("Enter, empty", "Steer the running turn with the next waiting prompt"),
    ("Shift+Enter", "New line; also Ctrl+J, Alt+Enter, and \\ before Enter"),
    ("Up  Down", "Earlier and later prompts, from the first and last line"),
    ("@", "Complete a file"),
    ("/", "Complete a command"),
    ("Tab", "To the conversation and back"),
    ("Ctrl+C", "Copy the selection, else interrupt, else clear; twice quits"),
    ("Ctrl+D", "Quit when the input is empty"),
    ("Ctrl+P", "All commands by name"),
)
NAMES = {"underscore": "_", "pageup": "PgUp", "pagedown": "PgDn"}


class HelpScreen(Report):
    """Made anew each time, so that it says what holds now."""

    def __init__(self, chat: ChatScreen) -> None:
        rows = [heading("Writing"), *map(ReportRow, WRITING)]
        rows += [heading("Commands")]
        rows += [ReportRow((command.title, _summary(command))) for command in COMMANDS if command.slash]
        own = [command for command in chat.own.rows if command.origin != "skill"]
        if own or chat.own.troubles:
            rows += [heading("Your own commands")]
            rows += [ReportRow((command.title, f"{command.summary} ({command.origin})")) for command in own]
            rows += [ReportRow(("", trouble)) for trouble in chat.own.troubles]
        rows += [heading("Keys")]
        rows += [ReportRow((spelled(command.keys), command.summary)) for command in COMMANDS if command.keys]
        for title, widget in (("In the input", chat.composer.prompt), ("In the conversation", chat.transcript)):
            rows += [heading(title), *_bound(widget)]
        super().__init__("Help", "", rows)


def heading(text: str) -> ReportRow:
    return ReportRow((text,), "heading")


def _summary(command: Command) -> str:
    others = ", ".join(f"/{alias}" for alias in command.aliases)
    return f"{command.summary} (also {others})" if others else command.summary


def _bound(widget: Widget) -> Iterable[ReportRow]:
    """The widget's own bindings, several keys of one deed in one row."""
    keys: dict[str, list[str]] = {}
    for key, bindings in widget._bindings.key_to_bindings.items():
        for binding in bindings:
            keys.setdefault(binding.description or binding.action, []).append(key)
    return [ReportRow((spelled(",".join(names)), description)) for description, names in keys.items()]


def spelled(keys: str) -> str:
    """``ctrl+underscore,alt+b`` as people read it: ``Ctrl+_  Alt+B``."""
    words: list[str] = []
    for key in keys.split(","):
        parts = [NAMES.get(part, part.title() if len(part) > 1 else part.upper()) for part in key.strip().split("+")]
        words.append("+".join(parts))
    return "  ".join(words)
