"""The one value that says how a display type is shown. Which type has which stands in ``renderers``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from ba_tui.core.values import frozen

if TYPE_CHECKING:
    from textual.widget import Widget

    from ba_tui.core.results import Diff
    from ba_tui.faces.tui.inspector.rows import GridRow
    from ba_tui.faces.tui.transcript.excerpt import PreviewSpace
    from ba_tui.faces.tui.transcript.lines import PaintedLine

D = TypeVar("D")
Build: TypeAlias = "Callable[[], Sequence[GridRow]]"


@frozen
class Renderer(Generic[D]):
    """``page`` and ``question`` return functions that make rows, a quick one first; each may run in a thread."""

    preview: Callable[[D, PreviewSpace], list[PaintedLine]]
    """A few lines, for the transcript. It is called on the UI loop: its cost must not grow with the result."""
    page: Callable[[D, bool], Sequence[Build]]
    """All of it, for the inspector; True: side by side."""
    question: Callable[[D], Sequence[Build]]
    """All of it, for a person who judges it: no character is hidden."""
    text: Callable[[D], str]
    """What is copied, without decoration."""
    values: Callable[[D], Iterable[object]]
    """The texts and lists that a question shows; their size says whether its rows are made on the spot."""
    shows: Callable[[D, object], bool] = lambda _display, _argument: False
    """Whether a question shows an argument of this value already."""
    edited: Callable[[D, Mapping[str, str]], Sequence[str]] | None = None
    """The names of the text arguments that a person would edit; None: the only argument there is."""
    changes: Callable[[D], Sequence[Diff]] | None = None
    """Changes of files, which can stand side by side."""
    widget: Callable[[D], Widget] | None = None
    """Stands in the inspector in place of rows."""
    printed: bool = False
    """Output of a program: its end matters most, and it says itself why it failed."""
    word_wrap: bool = False
    """Folds at spaces."""
    quiet: bool = False
    """The summary in the row is enough while the row is folded."""
    folded_rows: int = 0
    """Rows that it needs while the row of its call is folded; 0: as few as any other."""
    complete: bool = False
    """Says more than the stored text that it was made of."""
