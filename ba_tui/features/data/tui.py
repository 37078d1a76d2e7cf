"""Commands about data, and the list of it: tables, variables, files and sources of a session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import Notice
from ba_tui.core.ports.datasets import Datasets, NeedsConfirmation, PythonState, SourceInfo
from ba_tui.core.ports.tables import Catalogue, Column, Dataset, Progress, QueryResult, TrapFinding
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import byte_size, count, one_line, with_hint
from ba_tui.faces.tui.acts.port import Actions, inventory_of, needed
from ba_tui.faces.tui.screens.list_screen import ListRow, ListScreen
from ba_tui.faces.tui.screens.sheet import app_of

ANYWAY = "--yes"
SHOWN = 40
"""Columns whose names are shown."""
LONGEST = 300
NO_PYTHON = PythonState()
VARIABLE, FILE, RESET, SOURCE = "variable", "file", "reset", "source"
"""What begins the id of a choice that is no table."""
FRAMES = ("DataFrame", "Series")


class DataList(ListScreen[str]):
    """Results first, the newest on top; then datasets, variables, files, and sources with their tables. Typing searches
    names, sources, queries and columns. Enter on a DataFrame keeps it as a result. A source is asked for its tables
    when it is chosen, not before."""

    ENTER: ClassVar[str] = "open as a grid"
    EMPTY: ClassVar[str] = "No data yet. /data FILE opens a CSV, JSON, Parquet, Excel or SQLite file."
    BINDINGS: ClassVar[list[BindingType]] = [Binding("alt+p", "chart", "draw a chart")]

    def __init__(self, datasets: Datasets, catalogue: Catalogue, python: PythonState = NO_PYTHON) -> None:
        size = f"{count(len(catalogue.datasets), 'dataset')}, {count(len(catalogue.results), 'result')}"
        self._own = [_result(each) for each in reversed(catalogue.results)]
        self._own += [_dataset(each, catalogue.findings_of(each.name)) for each in catalogue.datasets]
        self._own += _python(python)
        if python.running:
            size = f"{size}, {count(len(python.variables), 'variable')}"
        super().__init__(f"Data: {size}", ())
        self._datasets = datasets
        self._list_sources()

    def action_chart(self) -> None:
        """Draw a chart of the table under the cursor."""
        if self.highlighted and ":" not in self.highlighted:
            from ba_tui.faces.tui.chart_pane import ChartScreen  # noqa: PLC0415 - loaded for the first chart

            app_of(self).push_screen(ChartScreen(self._datasets, self.highlighted))

    def choose(self, row: ListRow[str]) -> None:
        kind, sign, name = row.id.partition(":")
        if sign:
            if kind == SOURCE:
                self.say(f"Asking {name.partition('.')[0]} …")
            self.run_worker(partial(self._chosen, kind, name), exclusive=True)
        else:
            self._open(row.id)

    async def _chosen(self, kind: str, name: str) -> None:
        """Ask a source, keep a variable, tell how a file is saved, or reset Python."""
        python = self._datasets.python
        try:
            if kind == SOURCE:
                await self._looked(*name.split(".", 1))
            elif python and kind == VARIABLE:
                self._open(await python.keep(name))
            elif python and kind == RESET:
                await python.reset()
                self._own = [row for row in self._own if row.id.partition(":")[0] not in {VARIABLE, RESET}]
                self._list_sources()
                self.refill()
                self.say("Python was reset: its variables are gone.")
            elif kind == FILE:
                self.say(f"/python save {name} [PATH] copies it into your folder.")
        except BaError as error:
            self.say(with_hint(str(error), error.hint))

    def _open(self, name: str) -> None:
        from ba_tui.faces.tui.grid.pane import GridScreen  # noqa: PLC0415 - loaded for the first grid

        app_of(self).push_screen(GridScreen(self._datasets, name))

    async def _looked(self, source: str, table: str = "") -> None:
        """List the tables of a source, or show the first rows of one. Raises BaError."""
        if table:
            self._open(await self._datasets.sources.preview(source, table))
        else:
            await self._datasets.sources.tables(source)
            self._list_sources()
            self.refill()
        self.say("")

    def _list_sources(self) -> None:
        sources = (row for source in self._datasets.sources.listed() for row in _source(source))
        self.rows = [*self._own, *sources]


def _source(source: SourceInfo) -> Iterator[ListRow[str]]:
    below = "Enter lists its tables" if source.tables is None else count(len(source.tables), "table")
    yield ListRow(f"{SOURCE}:{source.name}", (f"@{source.name}  {source.engine}", "source"), below)
    for table in source.tables or ():
        yield ListRow(f"{SOURCE}:{source.name}.{table}", (f"@{source.name}.{table}", "source"))


def _python(state: PythonState) -> Iterator[ListRow[str]]:
    """Yield rows for variables, files, and the reset of Python."""
    for each in state.variables:
        frame = each.type in FRAMES
        below = "Enter keeps it as a result and opens it as a grid" if frame else ""
        yield ListRow(f"{VARIABLE}:{each.name}", (f"{each.name}  {each.type}", each.shape), below)
    if state.busy:
        yield ListRow(f"{FILE}:", ("Python is running code; its variables are listed afterwards",))
    for each in state.files:
        yield ListRow(f"{FILE}:{each.name}", (f"artifacts/{each.name}", byte_size(each.size)))
    if state.running:
        yield ListRow(f"{RESET}:", ("Reset Python",), "drops its variables; tables and files stay")


def _result(result: QueryResult) -> ListRow[str]:
    sql = one_line(result.provenance.sql, LONGEST)
    cells = (f"{result.handle}  {sql}", _warned(result.findings), *_size(result.rows, result.columns))
    return ListRow(result.handle, cells, _names(result.columns), keywords=_all_names(result.columns))


def _dataset(dataset: Dataset, findings: Sequence[TrapFinding]) -> ListRow[str]:
    part = f" · {dataset.part}" if dataset.part else ""
    skipped = f" · {count(dataset.rows_skipped, 'bad row')} skipped" if dataset.rows_skipped else ""
    title = f"{dataset.name}  {dataset.source}{part}{skipped}"
    cells = (title, _warned(findings), *_size(dataset.rows, dataset.columns))
    return ListRow(dataset.name, cells, _names(dataset.columns), keywords=_all_names(dataset.columns))


def _warned(findings: Sequence[TrapFinding]) -> str:
    told = sum(not each.muted for each in findings)
    return f"! {count(told, 'warning')}" if told else ""


def _size(rows: int, columns: Sequence[Column]) -> tuple[str, str]:
    return count(rows, "row"), count(len(columns), "column")


def _names(columns: Sequence[Column]) -> str:
    more = f", … {len(columns) - SHOWN:,} more" if len(columns) > SHOWN else ""
    return ", ".join(one_line(column.name, 40) for column in columns[:SHOWN]) + more


def _all_names(columns: Sequence[Column]) -> str:
    return " ".join(column.name for column in columns)


async def data(chat: Actions, words: str) -> None:
    """Show the data screen, or the table with this name, or the table of this file."""
    datasets = _datasets(chat)
    name = words.strip().removeprefix("@")
    if not name:
        await _show_list(chat, datasets)
    elif known := await _known(datasets, name):
        _show_grid(chat, datasets, known)
    else:
        found = await _registered(chat, datasets, name)
        if len(found) == 1:
            _show_grid(chat, datasets, found[0].name)
        else:
            await _show_list(chat, datasets)


async def unmask(chat: Actions, words: str) -> None:
    """Let models see the values of a column that looks personal."""
    datasets, column = _datasets(chat), words.strip().removeprefix("@")
    await datasets.unmask(column)
    shown = paintable(column, newlines=False)
    chat.activity.hint(f"Models see the values of {shown} from now on. ba config edit takes it back.")


def _datasets(chat: Actions) -> Datasets:
    return needed(inventory_of(chat).feature(Datasets), "This session has no data engine.")


async def _known(datasets: Datasets, name: str) -> str:
    """Return the table with this name, ignoring case; empty if there is none."""
    found = await datasets.catalogue()
    names = [*(each.name for each in found.datasets), *(each.handle for each in found.results)]
    return next((each for each in names if each.casefold() == name.casefold()), "")


async def _registered(chat: Actions, datasets: Datasets, file: str) -> Sequence[Dataset]:
    def heard(progress: Progress) -> None:
        _tell(chat, progress)

    chat.activity.note(paintable(f"Reading {file} …", newlines=False))
    try:
        return await datasets.register(file, on_progress=heard)
    finally:
        chat.activity.note("")


async def _show_list(chat: Actions, datasets: Datasets) -> None:
    state = await datasets.python.state() if datasets.python else PythonState()
    chat.ba.push_screen(DataList(datasets, await datasets.catalogue(), state))


def _show_grid(chat: Actions, datasets: Datasets, name: str) -> None:
    from ba_tui.faces.tui.grid.pane import GridScreen  # noqa: PLC0415 - most runs never show it

    chat.ba.push_screen(GridScreen(datasets, name))


async def report(chat: Actions, words: str) -> None:
    """Write a report: ``[--yes] [file]``. Without ``--yes`` the obstacles are reported instead."""
    _, conversation = chat.session.live
    datasets = conversation.inventory.feature(Datasets)
    if datasets is None or not chat.session.started:
        raise UsageError("This session is still empty.", "Write a report after the first answer.")
    confirmed = words.startswith(ANYWAY)
    path = words.removeprefix(ANYWAY).strip() or f"report-{conversation.id}.html"

    def heard(progress: Progress) -> None:
        _tell(chat, progress)

    try:
        done = await datasets.exports.report(path, title=conversation.title, confirmed=confirmed, on_progress=heard)
    except NeedsConfirmation as error:
        raise UsageError(str(error), f"Name another file, or: /report {ANYWAY} {path}") from error
    finally:
        chat.activity.note("")
    beside = " with its data beside it" if Path(path).suffix in {".py", ".ipynb"} else ""
    chat.tell(Notice(f"Wrote the report {done.path} ({byte_size(done.size)}){beside}."))


def _tell(chat: Actions, progress: Progress) -> None:
    share = f" {progress.share:.0%}" if progress.share is not None else ""
    chat.activity.note(paintable(f"{progress.doing}{share}", newlines=False))


async def python(chat: Actions, words: str) -> None:
    """Show the data screen, reset Python, or copy one of its files."""
    datasets = inventory_of(chat).feature(Datasets)
    if datasets is None or datasets.python is None:
        raise UsageError("This session has no Python.")
    act, _, rest = words.strip().partition(" ")
    match act:
        case "":
            await _show_list(chat, datasets)
        case "reset":
            ran = await datasets.python.reset()
            chat.tell(Notice("Python was reset: its variables are gone." if ran else "Python holds no variables."))
        case "save" if rest.strip():
            name, _, path = rest.strip().partition(" ")
            saved = await datasets.python.save(name.removeprefix("artifacts/"), path.strip())
            chat.tell(Notice(f"Saved {saved.name} ({byte_size(saved.size)})."))
        case _:
            raise UsageError(f"/python knows no {act!r}.", "Write /python, /python reset or /python save FILE [PATH].")
