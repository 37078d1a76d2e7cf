"""Every setting with its value and where that comes from; one value is changed in place, for the next start.

What may be set is the settings' affair.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static

from ba_tui.core.errors import BaError
from ba_tui.core.ports.settings import SettingLine, SettingsForm
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import clipped, count
from ba_tui.faces.tui.screens.picker import LOW, SHEETS, FewChoices, Picker, PickerChoice, app_of
from ba_tui.faces.tui.widgets.text_fields import ClusterInput

KEYS = "Enter change · Ctrl+R reset to default · type to search · Esc close"
CHOICE_KEYS = "Enter choose · Esc cancel"
VALUE_KEYS = "Enter save · Esc cancel"
NONE = "—"
UNSET = frozenset({"default", "bundled"})
"""Sources of values that nobody set."""
VALUE, SOURCE = 22, 20
"""Cells of a value and of a source."""


class ConfigScreen(Picker):
    """Typing finds by key, value, source and words of the description; ``words`` are typed already."""

    DEFAULT_CSS = """
    ConfigScreen .detail { height: 2; color: $foreground; margin-top: 1; }
    ConfigScreen.-low .detail { height: 1; margin-top: 0; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+r", "reset", "Reset to default", priority=True)]

    def __init__(self, form: SettingsForm, words: str = "") -> None:
        super().__init__("Settings", (), keys=KEYS)
        self._sought = words
        self.empty = "Reading …"
        self._form = form
        self._lines: dict[str, SettingLine] = {}

    def on_mount(self) -> None:
        sheet = self.query_one(".sheet")
        sheet.mount(Static(classes="detail", markup=False), before=self.query_one(".keys"))
        self.query_one(Input).value = self._sought
        self.run_worker(self._load, group="settings", exclusive=True, exit_on_error=False)

    async def _load(self, told: str = "") -> None:
        try:
            lines, problems = await asyncio.to_thread(lambda: (self._form.lines(), self._form.problems()))
        except BaError as error:
            self.say(error.with_hint)
            return
        self._lines = {line.key: line for line in lines}
        self.choices = [_choice(line) for line in lines]
        own = sum(line.source not in UNSET for line in lines)
        self.query_one(".title", Static).update(f"{count(len(lines), 'setting')}, {own} set")
        self.refill()
        self.say(told or (f"! {problems[0]}" if problems else KEYS))

    def matching(self) -> Sequence[PickerChoice]:
        """Those first whose keys are, then begin with, the words."""
        words = self.words.casefold().split()
        return sorted(super().matching(), key=lambda choice: sum(_distance(choice.id, word) for word in words))

    @on(Input.Changed)
    def _to_the_closest(self) -> None:
        """The cursor goes to the first row as words are typed."""
        self.query_one(OptionList).highlighted = None

    @on(OptionList.OptionHighlighted)
    def _detail(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        line = self._lines.get(event.option_id or "")
        words = ""
        if line:
            where = f" Change it with {line.elsewhere}." if line.elsewhere else ""
            source = "" if line.source in UNSET else f" From {line.source}."
            words = f"{line.about}{source}{where}"
        self.query_one(".detail", Static).update(paintable(words, newlines=False))

    def choose(self, id: str) -> None:
        line = self._lines.get(id)
        if line is None:
            return
        if not line.editable:
            self.say(f"{line.key} is not one value. Change it with {line.elsewhere}.")
        elif line.choices:
            choices = [PickerChoice(word, (word,), current=word == line.value) for word in line.choices]
            app_of(self).push_screen(FewChoices(line.key, choices, keys=CHOICE_KEYS), partial(self._given, line))
        else:
            app_of(self).push_screen(_ValueForm(line), partial(self._given, line))

    def _given(self, line: SettingLine, value: str | None) -> None:
        if value is not None and value != line.value:
            self.run_worker(partial(self._save, self._form.set, line.key, value), group="set", exit_on_error=False)

    def action_reset(self) -> None:
        line = self._lines.get(self.highlighted or "")
        if line is None:
            return
        if line.editable:
            self.run_worker(partial(self._save, self._form.reset, line.key), group="set", exit_on_error=False)
        else:
            self.say(f"{line.key} is not one value. Change it with {line.elsewhere}.")

    async def _save(self, work: Callable[..., str], *given: str) -> None:
        try:
            told = await asyncio.to_thread(work, *given)
        except BaError as error:
            told = f"Not saved: {error.with_hint}"
        await self._load(told)


class _ValueForm(ModalScreen[str | None]):
    """One value as text."""

    CSS_PATH = SHEETS
    VERTICAL_BREAKPOINTS = LOW
    DEFAULT_CSS = """
    _ValueForm .sheet { height: auto; min-height: 6; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "Leave")]

    def __init__(self, line: SettingLine) -> None:
        super().__init__(classes="picker")
        self._line = line

    def compose(self) -> ComposeResult:
        value = "" if self._line.value == NONE else self._line.value
        with Vertical(classes="sheet"):
            yield Static(self._line.key, classes="title", markup=False)
            yield Static(paintable(self._line.about, newlines=False), classes="lead", markup=False)
            yield ClusterInput(value, placeholder="Value", compact=True, select_on_focus=False)
            yield Static(VALUE_KEYS, classes="keys", markup=False)

    def on_mount(self) -> None:
        field = self.query_one(Input)
        field.cursor_blink = False
        field.focus()

    @on(Input.Submitted)
    def _keep(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value)

    def action_cancel(self) -> None:
        self.dismiss(None)


def _choice(line: SettingLine) -> PickerChoice:
    source = "" if line.source in UNSET else _short(line.source)
    return PickerChoice(
        line.key, (line.key, clipped(line.value, VALUE), source), keywords=f"{line.about} {line.source}"
    )


def _distance(key: str, word: str) -> int:
    """How far ``word`` is from ``key``: 0 for the key or a word of it, 1 for the beginning of one, 2 for the rest."""
    parts = (key, *re.split(r"[._]", key))
    return 0 if word in parts else 1 if any(part.startswith(word) for part in parts) else 2


def _short(source: str) -> str:
    """The end of a file's path, as far as it tells files apart."""
    *_, folder, name = ("", *source.rpartition(", ")[2].split("/"))
    return clipped(f".ba/{name}" if folder == ".ba" else name, SOURCE)
