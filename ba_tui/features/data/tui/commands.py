"""Commands about data: what the session has, and one table of it as a grid."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Notice
from ba_tui.core.ports.datasets import Datasets, NeedsConfirmation, PythonState
from ba_tui.core.ports.tables import Dataset, Progress
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import byte_size
from ba_tui.faces.tui.acts.port import Actions, inventory_of, needed

ANYWAY = "--yes"


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
    from ba_tui.features.data.tui.lists import DataList  # noqa: PLC0415 - most runs never show it

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
