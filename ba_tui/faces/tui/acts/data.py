"""Commands about data: what the session has, and one table of it as a grid."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.ports.tables import Dataset, Progress
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.acts.port import Actions, Room
from ba_tui.faces.tui.commands import SlashCommand


async def data(chat: Actions, words: str) -> None:
    """The data screen; with a name, that table; with a file, its table."""
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
    _, conversation = chat.session.live
    if conversation.inventory.datasets is None:
        raise UsageError("This session has no data engine.")
    return conversation.inventory.datasets


async def _known(datasets: Datasets, name: str) -> str:
    """The table of this name, in any case; empty when there is none."""
    found = await datasets.catalogue()
    names = [*(each.name for each in found.datasets), *(each.handle for each in found.results)]
    return next((each for each in names if each.casefold() == name.casefold()), "")


async def _registered(chat: Actions, datasets: Datasets, file: str) -> Sequence[Dataset]:
    def heard(progress: Progress) -> None:
        share = f" {progress.share:.0%}" if progress.share is not None else ""
        chat.activity.note(paintable(f"{progress.doing}{share}", newlines=False))

    chat.activity.note(paintable(f"Reading {file} …", newlines=False))
    try:
        return await datasets.register(file, on_progress=heard)
    finally:
        chat.activity.note("")


async def _show_list(chat: Actions, datasets: Datasets) -> None:
    from ba_tui.faces.tui.screens.data import DataList  # noqa: PLC0415 - most runs never show it

    chat.ba.push_screen(DataList(datasets, await datasets.catalogue()))


def _show_grid(chat: Actions, datasets: Datasets, name: str) -> None:
    from ba_tui.faces.tui.grid.screen import GridScreen  # noqa: PLC0415 - most runs never show it

    chat.ba.push_screen(GridScreen(datasets, name))


DATA = Room(
    {
        SlashCommand("data", "View datasets, results and their rows", "[table or file]", keys="f4"): data,
        SlashCommand("unmask", "Let models see a column that looks personal", "<table.column>"): unmask,
    }
)
