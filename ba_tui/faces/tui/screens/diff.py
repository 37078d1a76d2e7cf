"""The change that a call would make, on the whole screen, and the choice of its hunks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ba_tui.core.questions import Question
from ba_tui.core.results import Diff
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.values import frozen
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.displays.renderer import renderer_of
from ba_tui.faces.tui.inspector.diff import Hunks, can_say, hunk_rows, hunks, patch
from ba_tui.faces.tui.inspector.json_values import argument_rows
from ba_tui.faces.tui.inspector.pane import WIDE
from ba_tui.faces.tui.inspector.rows import GridRow, RowView, line, visible
from ba_tui.faces.tui.widgets.ask_body import Chosen, choose, facts, heading, other_arguments


@frozen
class _DiffPage:
    """Rows of a diff; the number of each change precedes its rows."""

    parts: Sequence[GridRow | int]
    count: int


class DiffScreen(ModalScreen[Chosen | None]):
    """Dismissed with the choice, or None when there was none to make."""

    DEFAULT_CSS = """
    DiffScreen { background: $surface; }
    DiffScreen > Vertical { padding: 0 1; }
    DiffScreen .title { height: 1; text-style: bold; text-wrap: nowrap; text-overflow: ellipsis; }
    DiffScreen .keys { height: auto; max-height: 2; color: $text-muted; }
    DiffScreen RowView { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "close", "Back", priority=True),
        Binding("n,right_square_bracket", "step(1)", "Next change"),
        Binding("p,left_square_bracket", "step(-1)", "Change before"),
        Binding("space", "choose", "Accept or leave out", priority=True),
        Binding("a", "choose_all", "Accept all or none"),
        Binding("d", "split", "Side by side or one below the other"),
        Binding("w", "wrap", "Wrap"),
        Binding("y", "copy", "Copy"),
    ]

    def __init__(self, question: Question, agent: str, choice: Chosen | None = None) -> None:
        super().__init__()
        self._question = question
        self._agent = agent
        self._chosen = choice
        self._accepted: set[int] = set()
        self._at = 0
        self._split: bool | None = None
        self._hunks: tuple[Hunks, ...] = ()
        self._page: _DiffPage | None = None
        self._choosing = False
        self._heads: Sequence[int] = ()

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(f"{visible(self._question.tool)} · {heading(self._question)}", classes="title", markup=False)
            yield RowView([line(("Reading the change …", "muted"))], word_wrap=True)
            yield Static(classes="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(RowView).focus()
        self.run_worker(self._build, group="diff", exclusive=True)

    def on_resize(self) -> None:
        if self._page and self._split is None:
            self.run_worker(self._build, group="diff", exclusive=True)

    @property
    def _items(self) -> Sequence[Diff]:
        preview = self._question.preview
        return renderer_of(preview).changes(preview) if preview else ()

    @property
    def _side_by_side(self) -> bool:
        return self.size.width >= WIDE if self._split is None else self._split

    async def _build(self) -> None:
        """Compare once, then make the rows; both off the loop."""
        first = self._page is None
        if not self._hunks:
            self._hunks = tuple(await asyncio.to_thread(lambda: [hunks(item) for item in self._items]))
            self._choosing = self._may_choose()
            total = sum(of.count for of in self._hunks)
            self._accepted = set(self._chosen.accepted if self._chosen else range(total))
        split = self._side_by_side
        self._page = await asyncio.to_thread(lambda: _page(self._items, self._hunks, split=split))
        self._show(stay=not first)

    def _may_choose(self) -> bool:
        preview = self._question.preview
        one = isinstance(preview, Diff) and preview.before is not None and self._hunks[0].count > 1
        return one and isinstance(preview, Diff) and can_say(self._question.args, preview)

    def _show(self, *, stay: bool = True) -> None:
        if self._page is None:
            return
        view = self.query_one(RowView)
        rows, heads = self._rows(self._page)
        if stay:
            view.swap(rows)
        else:
            view.put(rows)
        self._heads = heads
        self.query_one(".keys", Static).update(self._keys)

    def _rows(self, page: _DiffPage) -> tuple[list[GridRow], list[int]]:
        known = facts(self._question, self._agent).plain.split("\n")
        rows = [line((words, "warning" if words.startswith("! ") else "muted")) for words in known]
        rows += [*argument_rows(other_arguments(self._question)), line()]
        heads: list[int] = []
        for part in page.parts:
            if isinstance(part, int):
                heads.append(len(rows))
                rows.append(self._head(part, page.count))
            else:
                rows.append(part)
        return rows, heads

    def _head(self, number: int, count: int) -> GridRow:
        here = number == self._at
        pointer = "❯ " if here else "  "
        mark, after = "", ""
        if self._choosing:
            taken = number in self._accepted
            mark, after = ("[x] ", "") if taken else ("[ ] ", "  left out")
        label = (f"{pointer}{mark}Change {number + 1} of {count}", "heading")
        return line(label, (after, "warning"), tone="selected" if here else "")

    @property
    def _keys(self) -> str:
        choosing = f"Space accepts or leaves out ({len(self._accepted)} accepted) · a all · " if self._choosing else ""
        split = "one below the other" if self._side_by_side else "side by side"
        return f"Esc back · {choosing}n p changes · ↑ ↓ scroll · d {split} · w wrap · y copy"

    # Keys

    def action_step(self, by: int) -> None:
        if self._page and self._page.count:
            self._at = (self._at + by) % self._page.count
            self._show()
            view, head = self.query_one(RowView), self._heads[self._at]
            self.call_after_refresh(view.reveal, head)

    def action_choose(self) -> None:
        if not self._choosing:
            self.query_one(RowView).action_move("page_down")
            return
        self._accepted ^= {self._at}
        self._show()

    def action_choose_all(self) -> None:
        if self._choosing and self._page:
            self._accepted = set() if self._accepted else set(range(self._page.count))
            self._show()

    def action_split(self) -> None:
        self._split = not self._side_by_side
        self.run_worker(self._build, group="diff", exclusive=True)

    def action_wrap(self) -> None:
        view = self.query_one(RowView)
        view.wrap = not view.wrap

    def action_copy(self) -> None:
        text = self.get_selected_text() or "".join(map(patch, self._items))
        self.post_message(CopyToClipboard(paintable(text)))

    def action_close(self) -> None:
        if not self._choosing:
            self.dismiss(None)
            return
        self.query_one(".keys", Static).update(Content("Working out the call …"))
        self.run_worker(self._leave, group="leave", exclusive=True)

    async def _leave(self) -> None:
        question, of, accepted = self._question, self._hunks[0], frozenset(self._accepted)
        self.dismiss(await asyncio.to_thread(lambda: choose(question, of, accepted)))


def _page(items: Sequence[Diff], changes: Sequence[Hunks], *, split: bool) -> _DiffPage:
    """Return all files, their changes counted through."""
    parts: list[GridRow | int] = []
    count = 0
    for item, of in zip(items, changes, strict=True):
        kind = "new file  " if item.before is None else ""
        added = (f"+{of.change.added}", "plus"), (" ", ""), (f"-{of.change.removed}", "minus")
        parts.append(line((visible(item.path) + "  ", "heading"), (kind, "muted"), *added))
        parts.extend(part + count if isinstance(part, int) else part for part in hunk_rows(of, split=split))
        parts.append(line() if of.count else line(("No line changed.", "muted")))
        count += of.count
    return _DiffPage(parts, count)
