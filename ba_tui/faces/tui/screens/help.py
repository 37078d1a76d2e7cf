"""F1: every command and every key, read from the table and from the bindings that are live."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from textual.widget import Widget

from ba_tui.core.questions import Question
from ba_tui.faces.tui.acts.port import CommandRows
from ba_tui.faces.tui.commands import PROMPT, SlashCommand
from ba_tui.faces.tui.screens.report import ReportPane, ReportRow
from ba_tui.faces.tui.widgets.ask_answers import answers_to

WRITING = (
    ("Enter", "Send, or queue while a turn runs"),
    ("Enter, empty", "Send next queued message now"),
    ("Shift+Enter", "New line; also Ctrl+J, Alt+Enter, and \\ before Enter"),
    ("Up  Down", "Earlier and later prompts, from the first and last line"),
    ("@", "Complete a file, folder, skill, tool or session"),
    ("/", "Complete a command"),
    ("#", "Remember the rest of the line, for later sessions"),
    ("?, empty", "Keys and commands"),
    ("Tab", "Switch focus"),
    ("Ctrl+C", "Copy the selection, else interrupt, else clear; twice: quit"),
    ("Ctrl+D", "Quit when the input is empty"),
    ("Ctrl+P", "All commands by name"),
)
NAMES = {"underscore": "_", "pageup": "PgUp", "pagedown": "PgDn", "escape": "Esc"}
BESIDE = (
    ("Enter", "Show it on the full screen"),
    ("Ctrl+Y", "Copy it"),
    ("Alt+W  Alt+D", "Wrap lines; show a diff side by side"),
    ("Alt+V  Ctrl+F", "Show the whole text; search it"),
)
ASKED = (
    ("e", "Edit the arguments first"),
    ("d", "Full diff or text; choose which changes of a diff to accept"),
    ("r", "Edit the rule"),
    ("Esc", "No, and interrupt"),
)
SIDEWAYS = {"scroll_left", "scroll_right", "page_left", "page_right"}
"""Every widget that scrolls has them; the conversation never needs them."""
SAMPLE = Question("permission", "", rule="what the line names")


class HelpScreen(ReportPane):
    """Made anew each time, so that it says what holds now. ``widgets``: whose keys are listed, by heading."""

    def __init__(self, commands: CommandRows, widgets: Mapping[str, Widget]) -> None:
        bundled = [command for command in commands.rows if command.origin in {"", PROMPT}]
        rows = [heading("Writing"), *map(ReportRow, WRITING)]
        rows += [heading("Commands")]
        rows += [ReportRow((command.title, _summary(command))) for command in bundled if command.slash]
        own = [command for command in commands.rows if command.origin not in {"", PROMPT, "skill"}]
        if own or commands.troubles:
            rows += [heading("Your own commands")]
            rows += [ReportRow((command.title, f"{command.summary} ({command.origin})")) for command in own]
            rows += [ReportRow(("", trouble)) for trouble in commands.troubles]
        rows += [heading("When ba asks")]
        rows += [ReportRow((answer.shown, f"{answer.label} {answer.rule}".rstrip())) for answer in answers_to(SAMPLE)]
        rows += map(ReportRow, ASKED)
        rows += [heading("Keys")]
        rows += [ReportRow((spelled(command.keys), command.summary)) for command in bundled if command.keys]
        for title, widget in widgets.items():
            rows += [heading(title), *_bound(widget)]
        rows += [heading("In a result beside the conversation"), *map(ReportRow, BESIDE)]
        super().__init__("Help", "", rows)


def heading(text: str) -> ReportRow:
    return ReportRow((text,), "heading")


def _summary(command: SlashCommand) -> str:
    others = ", ".join(f"/{alias}" for alias in command.aliases)
    return f"{command.summary} (also {others})" if others else command.summary


def _bound(widget: Widget) -> Iterable[ReportRow]:
    """The widget's own bindings, several keys of one deed in one row."""
    keys: dict[str, list[str]] = {}
    for key, bindings in widget._bindings.key_to_bindings.items():
        for binding in bindings:
            if binding.action not in SIDEWAYS:
                keys.setdefault((binding.description or binding.action).capitalize(), []).append(key)
    return [ReportRow((spelled(",".join(names)), description)) for description, names in keys.items()]


def spelled(keys: str) -> str:
    """``ctrl+underscore,alt+b`` as people read it: ``Ctrl+_  Alt+B``."""
    return "  ".join(_key(key.strip().split("+")) for key in keys.split(","))


def _key(parts: list[str]) -> str:
    """A letter alone stays as it is: ``g`` and ``G`` are two keys."""
    if len(parts) == 1 and len(parts[0]) == 1:
        return parts[0]
    return "+".join(NAMES.get(part, part.title() if len(part) > 1 else part.upper()) for part in parts)
