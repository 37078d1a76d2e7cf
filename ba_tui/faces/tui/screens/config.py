"""All settings with their values and sources, which apply from the next start; and the list of instruction files."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, OptionList, Static

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.ports.context import ContextFile, ContextFiles
from ba_tui.core.ports.settings import SettingLine, SettingsForm
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import clipped, count
from ba_tui.faces.tui.acts.port import Actions
from ba_tui.faces.tui.meters import short_count
from ba_tui.faces.tui.screens.list_screen import RELOAD, ChoiceList, ListContent, ListRow, ListScreen
from ba_tui.faces.tui.screens.sheet import Sheet, app_of
from ba_tui.faces.tui.widgets.text_fields import ClusterInput

NONE = "—"
UNSET = frozenset({"default", "bundled"})
"""Sources of values that the user did not set."""
VALUE, SOURCE = 22, 20
"""Cells of a value and of a source."""


class ConfigScreen(ListScreen[SettingLine]):
    """Typing finds by key, value, source and words of the description; ``words`` are typed already."""

    DETAIL: ClassVar[bool] = True
    ENTER: ClassVar[str] = "change"
    READING: ClassVar[str] = "Reading …"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+r", "reset", "reset to default", priority=True)]

    def __init__(self, form: SettingsForm, words: str = "") -> None:
        super().__init__("Settings")
        self._form = form
        self._first_words = words

    def on_mount(self) -> None:
        self.query_one(Input).value = self._first_words

    async def load(self) -> None:
        await super().load()
        if problems := await asyncio.to_thread(self._form.problems):
            self.say(f"! {problems[0]}")

    def read(self) -> ListContent[SettingLine]:
        settings = self._form.lines()
        own = sum(each.source not in UNSET for each in settings)
        return ListContent([_setting_row(each) for each in settings], f"{count(len(settings), 'setting')}, {own} set")

    def matching(self) -> Sequence[ListRow[SettingLine]]:
        """Return the settings whose key is one of the words first, then those whose key begins with one."""
        words = self.words.casefold().split()
        return sorted(super().matching(), key=lambda row: sum(_distance(row.id, word) for word in words))

    @on(Input.Changed)
    def _go_to_closest(self) -> None:
        """Move the cursor to the first row as words are typed."""
        self.query_one(OptionList).highlighted = None

    def detail(self, row: ListRow[SettingLine]) -> str:
        setting = row.value
        if setting is None:
            return ""
        where = f" Change it with {setting.elsewhere}." if setting.elsewhere else ""
        source = "" if setting.source in UNSET else f" From {setting.source}."
        return " ".join(f"{setting.about}{source}{where}".split())

    def choose(self, row: ListRow[SettingLine]) -> None:
        setting = row.value
        if setting is None or not self._is_editable(setting):
            return
        save = partial(self._save, setting)
        if setting.choices:
            rows = [ListRow[str](word, (word,), current=word == setting.value) for word in setting.choices]
            app_of(self).push_screen(ChoiceList(setting.key, rows), save)
        else:
            app_of(self).push_screen(_ValueForm(setting), save)

    def _is_editable(self, setting: SettingLine) -> bool:
        if not setting.editable:
            self.say(f"{setting.key} is not one value. Change it with {setting.elsewhere}.")
        return setting.editable

    def _save(self, setting: SettingLine, value: str | None) -> None:
        if value is not None and value != setting.value:
            self._change(self._form.set, setting.key, value)

    def action_reset(self) -> None:
        setting = self.item
        if setting and self._is_editable(setting):
            self._change(self._form.reset, setting.key)

    def _change(self, work: Callable[..., str], *args: str) -> None:
        async def run() -> str:
            try:
                return await asyncio.to_thread(work, *args)
            except BaError as error:
                return f"Not saved: {error.with_hint}"

        self.perform(run)


class _ValueForm(Sheet[str]):
    """One value as text."""

    DEFAULT_CSS = """
    _ValueForm .sheet { height: auto; min-height: 6; }
    """

    def __init__(self, setting: SettingLine) -> None:
        super().__init__(setting.key, keys="Enter save · Esc cancel")
        self._setting = setting

    def body(self) -> ComposeResult:
        yield Static(paintable(self._setting.about, newlines=False), classes="lead", markup=False)
        value = "" if self._setting.value == NONE else self._setting.value
        field = ClusterInput(value, placeholder="Value", compact=True, select_on_focus=False)
        field.cursor_blink = False
        yield field

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    @on(Input.Submitted)
    def _keep(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value)


def _setting_row(setting: SettingLine) -> ListRow[SettingLine]:
    source = "" if setting.source in UNSET else _short(setting.source)
    cells = (setting.key, clipped(setting.value, VALUE), source)
    return ListRow(setting.key, cells, keywords=f"{setting.about} {setting.source}", value=setting)


def _distance(key: str, word: str) -> int:
    """Return how far ``word`` is from ``key``: 0 for the key or a word of it, 1 for the beginning of one, 2 for the
    rest.
    """
    parts = (key, *re.split(r"[._]", key))
    return 0 if word in parts else 1 if any(part.startswith(word) for part in parts) else 2


def _short(source: str) -> str:
    """Return the end of a file's path, as far as it tells files apart."""
    *_, folder, name = ("", *source.rpartition(", ")[2].split("/"))
    return clipped(f".ba/{name}" if folder == ".ba" else name, SOURCE)


def config(chat: Actions, words: str) -> None:
    services, _conversation = chat.session.live
    if services.settings is None or not chat.session.start.kept:
        raise UsageError("This session saves no settings.", "Start ba in one of your folders, then use /config.")
    chat.ba.push_screen(ConfigScreen(services.settings, words))


OWNERS = {"user": "Yours, in every folder", "project": "This project's"}
EDITED = "What you changed counts from your next message."
EditFile = Callable[[Path], Awaitable[None]]
"""Opens a file in the user's editor. Raises UsageError."""


class ContextFileList(ListScreen[ContextFile]):
    """Instruction files, grouped by their owner."""

    FILTERED: ClassVar[bool] = False
    ENTER: ClassVar[str] = "edit"
    BINDINGS: ClassVar[list[BindingType]] = [RELOAD]

    def __init__(self, files: ContextFiles, edit: EditFile) -> None:
        super().__init__("Instruction files")
        self._files = files
        self._edit = edit

    def read(self) -> ListContent[ContextFile]:
        files = self._files.files()
        used = [file for file in files if file.state == "read"]
        tokens = short_count(sum(file.tokens for file in used))
        title = f"{count(len(used), 'context file')} read, about {tokens} tokens" if used else "nothing is read"
        rows = [_file_row(file) for owner in OWNERS for file in files if file.owner == owner]
        return ListContent(rows, f"Instruction files: {title}")

    def choose(self, row: ListRow[ContextFile]) -> None:
        if file := row.value:
            self.perform(lambda: self._edit(file.path), EDITED)


def _file_row(file: ContextFile) -> ListRow[ContextFile]:
    id, group = str(file.path), OWNERS[file.owner]
    if file.state == "missing":
        return ListRow(id, (file.shown, "not there", ""), "Enter creates it", value=file, group=group)
    size = f"~{short_count(file.tokens)} tokens" if file.tokens else ""
    below = " · ".join(filter(None, (file.note, *file.details)))
    cells = (file.shown, "read" if file.state == "read" else "not read", size)
    return ListRow(id, cells, below, value=file, group=group)
