"""Charts on the command line: drawn as text on stdout, or saved as a picture."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, get_args

from ba_tui.cli.config import print_line
from ba_tui.cli.streams import write_output
from ba_tui.core.displays.charts import PICTURES, Chart, ChartKind, ChartRequest
from ba_tui.core.errors import UsageError
from ba_tui.core.text.wording import suggestion

if TYPE_CHECKING:
    from ba_tui.features.data.analysis.engine import Analysis, Listener
    from ba_tui.plotting.canvas import Line

T = TypeVar("T")

PIPED_WIDTH = 80
COLOURS = ("36", "33", "32", "31", "35", "34", "96", "93")
"""SGR codes of series."""
STYLES = {"title": "1", "dim": "2"}


class OpenData(Protocol):
    """The engine of one command; ``run`` returns what a request of it does."""

    @property
    def engine(self) -> Analysis: ...

    def run(self, work: Coroutine[Any, Any, T]) -> T: ...


def check_picture(out: Path) -> None:
    """Raises UsageError where the ending is not that of a picture."""
    if out.suffix.lower().lstrip(".") not in PICTURES:
        raise UsageError(f"{out.name} is no picture.", "Its name must end in .svg or .png.")


def check_kind(kind: str) -> ChartKind:
    """The kind of this name. Raises UsageError."""
    found: ChartKind | None = next((each for each in get_args(ChartKind) if each == kind), None)
    if found is None:
        raise UsageError(f"There is no chart {kind!r}.", f"{suggestion(kind, get_args(ChartKind)).capitalize()}")
    return found


def deliver_chart(
    data: OpenData, wanted: ChartRequest, heard: Listener, out: Path | None = None, look: tuple[int, bool] = (0, False)
) -> None:
    """Compute a chart, and print or save it; ``look``: its width and whether it is ASCII, as in ``print_chart``."""
    drawing = data.run(data.engine.charts.compute(wanted, on_progress=heard))
    if out is None:
        print_chart(drawing, *look)
        return
    picture = data.engine.charts.picture(drawing, "svg" if out.suffix.lower() == ".svg" else "png")
    with data.run(picture.__aenter__()).open("rb") as source:
        write_output(out, source)


def print_chart(chart: Chart, width: int = 0, ascii_: bool = False) -> None:
    """Draw a chart on stdout: as wide as the terminal, coloured only there and unless NO_COLOR is set."""
    from ba_tui.plotting.canvas import ASCII, Room  # noqa: PLC0415 - --help must not wait for it
    from ba_tui.plotting.drawing import USUAL_HEIGHT, drawn, signs_for  # noqa: PLC0415

    terminal = sys.stdout.isatty()
    signs = ASCII if ascii_ else signs_for(os.environ if terminal else {}, sys.stdout.encoding or "utf-8")
    columns = width or (shutil.get_terminal_size().columns if terminal else PIPED_WIDTH)
    coloured = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    lines = drawn(chart, Room(columns, USUAL_HEIGHT, signs, grow=True))
    print_line("\n".join(painted_lines(lines, coloured=coloured)))


def painted_lines(lines: Sequence[Line], *, coloured: bool) -> list[str]:
    """Lines as text, with SGR sequences when ``coloured``."""
    found: list[str] = []
    for line in lines:
        if not coloured:
            found.append("".join(run.text for run in line).rstrip())
            continue
        parts = [
            f"\x1b[{code}m{run.text}\x1b[0m" if (code := _code(run.role)) and run.text.strip() else run.text
            for run in line
        ]
        found.append("".join(parts).rstrip())
    return found


def _code(role: str) -> str:
    return COLOURS[int(role) - 1] if role.isdigit() else STYLES.get(role, "")
