"""How each display type is shown. A new type needs a ``Renderer`` and a line in ``RENDERERS``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

from ba_tui.core.results import (
    Chart,
    CommandText,
    Diff,
    Diffs,
    Display,
    PlanGraph,
    Prose,
    ScriptCall,
    Source,
    Table,
    Todos,
)

if TYPE_CHECKING:
    from textual.widget import Widget

    from ba_tui.faces.tui.inspector.rows import GridRow
    from ba_tui.faces.tui.transcript.lines import PreviewSpace, Rows

D = TypeVar("D")
Build: TypeAlias = "Callable[[], Sequence[GridRow]]"
"""Makes rows; may run in a thread."""
FOLDER = "ba_tui.faces.tui.displays"
RENDERERS: dict[type, str] = {
    Diff: f"{FOLDER}.diff:DiffRenderer",
    Diffs: f"{FOLDER}.diff:DiffsRenderer",
    CommandText: f"{FOLDER}.source:CommandRenderer",
    Source: f"{FOLDER}.source:SourceRenderer",
    ScriptCall: f"{FOLDER}.source:ScriptCallRenderer",
    Prose: f"{FOLDER}.source:ProseRenderer",
    Table: f"{FOLDER}.table:TableRenderer",
    Chart: f"{FOLDER}.table:ChartRenderer",
    PlanGraph: f"{FOLDER}.plan:PlanRenderer",
    Todos: f"{FOLDER}.plan:TodosRenderer",
}
"""Names of the renderers, which are imported for the first display of their type."""


class Renderer(Generic[D]):
    """Shows displays of one type everywhere: in the transcript, in the inspector and in questions."""

    printed: ClassVar[bool] = False
    """Whether it is the output of a program, which explains its own failure at its end."""
    word_wrap: ClassVar[bool] = False
    """Whether long lines are folded at spaces."""
    quiet: ClassVar[bool] = False
    """Whether the summary is enough while the row is folded."""
    folded_rows: ClassVar[int] = 0
    """Rows of the preview while the row of its call is folded; 0 for the usual number."""
    complete: ClassVar[bool] = False
    """Whether it shows more than the stored text that it was made of."""
    has_widget: ClassVar[bool] = False
    """Whether the inspector shows ``widget`` in place of rows."""
    has_changes: ClassVar[bool] = False
    """Whether it consists of ``changes`` of files, which can be shown side by side."""

    def preview(self, display: D, space: PreviewSpace) -> Rows:
        """Return a few lines for the transcript. Runs on the UI loop: the cost must not grow with the result."""
        raise NotImplementedError

    def page(self, display: D, *, split: bool) -> Sequence[Build]:
        """Return functions that make all rows for the inspector, a quick one first. ``split``: side by side."""
        return self.question(display)

    def question(self, display: D) -> Sequence[Build]:
        """Return functions that make all rows for a user who judges them: no character is hidden."""
        raise NotImplementedError

    def text(self, display: D) -> str:
        """Return the text to copy, without decoration."""
        raise NotImplementedError

    def values(self, display: D) -> Iterable[object]:
        """Return the texts and lists in a question; by their size rows are made at once or in a thread."""
        raise NotImplementedError

    def shows(self, display: D, argument: object) -> bool:
        """Return whether a question already shows an argument with this value."""
        return False

    def edited(self, display: D, texts: Mapping[str, str]) -> Sequence[str] | None:
        """Return which of the text arguments a user would edit; None for the only one."""
        return None

    def changes(self, display: D) -> Sequence[Diff]:
        """Return the changes of files."""
        return ()

    def widget(self, display: D) -> Widget:
        """Return the widget for the inspector."""
        raise NotImplementedError


def renderer_of(display: Display) -> Renderer[Any]:
    """Return the renderer of the display's type."""
    return _renderer(RENDERERS[type(display)])


@cache
def _renderer(name: str) -> Renderer[Any]:
    return resolve_name(name)()
