"""Results of tools: text for the model, a Display for people (charts and plans too), a state change for the session."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Annotated, Any, Literal, TypeAlias, get_args

from ba_tui.core.errors import ErrorInfo, ErrorKind
from ba_tui.core.messages import ByType, Document, Image, ToolOutput
from ba_tui.core.teamwork import Plan
from ba_tui.core.values import frozen

ChartKind: TypeAlias = Literal["bar", "line", "area", "scatter", "histogram", "box", "heatmap", "pie"]
Aggregate: TypeAlias = Literal["sum", "mean", "median", "min", "max", "count"]
ChartOrder: TypeAlias = Literal["value", "label", "table"]
AxisKind: TypeAlias = Literal["category", "number", "time"]
PictureFormat: TypeAlias = Literal["svg", "png"]
CHART_KINDS: tuple[ChartKind, ...] = get_args(ChartKind)
AGGREGATES: tuple[Aggregate, ...] = get_args(Aggregate)
PICTURES: tuple[PictureFormat, ...] = get_args(PictureFormat)


@frozen
class ChartRequest:
    """A chart of the table ``data``. Empty or None fields are chosen by the columns and their values. ``series`` is a
    column whose values become separate series. ``limit``: maximum number of categories, 0 for the default. ``low`` and
    ``high`` bound the value axis of lines and points."""

    data: str
    kind: ChartKind | None = None
    x: str = ""
    y: tuple[str, ...] = ()
    series: str = ""
    aggregate: Aggregate | None = None
    order: ChartOrder | None = None
    limit: int = 0
    stacked: bool = False
    log: bool = False
    low: float | None = None
    high: float | None = None
    title: str = ""
    unit: str = ""


@frozen
class ChartSeries:
    """Points in the order of ``x``. On a category axis ``x`` is the index in the chart's labels; on a time axis it is
    in seconds since the epoch. A None in ``y`` is a gap. ``weights``: the number of rows behind each point."""

    name: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    weights: tuple[int, ...] = ()


@frozen
class Box:
    """A box of a box plot. The whiskers ``low`` and ``high`` are the last values within 1.5 interquartile ranges;
    ``outliers`` of the ``count`` values are beyond them."""

    label: str
    low: float
    first: float
    median: float
    third: float
    high: float
    count: int
    outliers: int = 0


@frozen
class Chart:
    """``request`` with all defaults resolved. ``rows``: rows of the table; ``notes`` say what is not shown. A heatmap
    has a series for each of its rows. ``step`` is the bin width of a histogram, whose ``x`` are the lower bin edges.
    ``correlation`` (Pearson) is that of a scatter plot."""

    request: ChartRequest
    axis: AxisKind
    x_title: str
    y_title: str
    series: tuple[ChartSeries, ...] = ()
    labels: tuple[str, ...] = ()
    boxes: tuple[Box, ...] = ()
    step: float = 0.0
    rows: int = 0
    notes: tuple[str, ...] = ()
    correlation: float | None = None
    type: Literal["chart"] = "chart"

    @property
    def kind(self) -> ChartKind:
        return self.request.kind or "bar"

    @property
    def subject(self) -> str:
        """Return the content in words: "sum of amount by region"."""
        if self.kind == "histogram":
            return f"Distribution of {self.x_title}"
        by = " and ".join(filter(None, (self.x_title, self.request.series)))
        return f"{self.y_title} by {by}" if by else self.y_title

    @property
    def title(self) -> str:
        """Return the requested title, or else the subject."""
        return self.request.title or self.subject

    @property
    def empty(self) -> bool:
        """Return whether there is nothing to draw."""
        return not self.boxes and not any(value is not None for each in self.series for value in each.y)


@frozen
class PlanGraph:
    """A plan to be approved, or its state when a call ended. ``notes``: sentences about changes and doubts of the
    planner."""

    plan: Plan
    notes: tuple[str, ...] = ()
    type: Literal["plan"] = "plan"


TodoStatus: TypeAlias = Literal["pending", "in_progress", "completed"]
Priority: TypeAlias = Literal["low", "medium", "high"]


@frozen
class Todo:
    id: str
    content: str
    status: TodoStatus = "pending"
    priority: Priority = "medium"
    broken: str = ""
    """The failed last command when the item was set to completed."""

    @property
    def done(self) -> bool:
        """Return whether it is completed without a failed command."""
        return self.status == "completed" and not self.broken


@frozen
class ActiveSkill:
    """A skill on the activation stack. ``digest`` is the hash of its content at activation; ``allowed_tools`` are the
    tools in its front matter (``exclusive``: no others may be used), ``model`` its override, empty for none. ``by``:
    who started it; ``core`` skills do not count as depth."""

    id: str
    activation: str
    digest: str
    parameters: str = ""
    allowed_tools: tuple[str, ...] = ()
    exclusive: bool = False
    model: str = ""
    by: Literal["model", "person", "file", "core"] = "model"


@frozen
class Diff:
    """A change of one file. ``before`` is None if the file is new; both texts use ``\\n`` line ends."""

    path: str
    before: str | None
    after: str
    type: Literal["diff"] = "diff"


@frozen
class Diffs:
    """Changes of several files, made together."""

    items: tuple[Diff, ...]
    type: Literal["diffs"] = "diffs"


@frozen
class CommandText:
    """A command and its output with colours. ``exit_code`` is None while unknown (preview, killed). ``lines``: the
    number of output lines if ``output`` is only a part, otherwise 0. ``failed``: the judgement of the exit codes of its
    parts, None if the exit code decides."""

    command: str
    cwd: str = ""
    output: str = ""
    exit_code: int | None = None
    lines: int = 0
    type: Literal["command"] = "command"
    failed: bool | None = None

    @property
    def broke(self) -> bool:
        """Return whether it failed. Rows, plans, memory and reports use ``ToolResult.failed``."""
        return self.exit_code not in (0, None) if self.failed is None else self.failed


@frozen
class Source:
    """Lines of a file, from line ``start`` (1-based)."""

    path: str
    text: str
    start: int = 1
    type: Literal["source"] = "source"


@frozen
class ScriptCall:
    """A script of a skill and its input: ``path`` and source ``text`` of the script, its ``args``, and ``stdin`` as
    text or as the JSON value that it represents."""

    path: str
    args: tuple[str, ...]
    stdin: Any
    text: str
    type: Literal["script_call"] = "script_call"


@frozen
class Table:
    """``handle``: the result of a query (R1), of whose ``total`` rows ``rows`` are the first. ``warnings``: caveats
    about its numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    type: Literal["table"] = "table"
    handle: str = ""
    total: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def length(self) -> int:
        """Return the number of rows of the whole result."""
        return max(self.total, len(self.rows))


@frozen
class Prose:
    """Plain text, or Markdown if ``markdown``."""

    text: str
    markdown: bool = False
    type: Literal["prose"] = "prose"


@frozen
class Todos:
    items: tuple[Todo, ...]
    type: Literal["todos"] = "todos"


OutputLevel: TypeAlias = Literal["brief", "standard", "full"]
"""How much of a result the model reads."""

Kind: TypeAlias = Literal["text", "json", "table", "listing", "hits"]
"""The kind of a result's text, which decides how it is shortened."""

Display: TypeAlias = Annotated[
    Diff | Diffs | CommandText | Source | ScriptCall | Table | Chart | Prose | PlanGraph | Todos, ByType()
]


@frozen
class SeenFile:
    """What the conversation knows of a file: the ``digest`` of its bytes when last read or written (BLAKE2b, 16 bytes
    in hex), and the 0-based ranges of lines that the model has not seen."""

    path: str
    digest: str
    unread: tuple[tuple[int, int], ...] = ()


@frozen
class StateChange:
    """Changes of the session state by a result; folded together with it."""

    todos: tuple[Todo, ...] | None = None
    cwd: str | None = None
    skills: tuple[ActiveSkill, ...] | None = None
    """The activation stack, the outermost skill first."""
    seen: tuple[SeenFile, ...] = ()


UNREAD = "unread_lines"
"""In ``meta``: how many lines in the middle of the text the model did not get; 0 if it got a summary."""


@frozen
class ToolResult:
    """``text`` is the output for the model, ``summary`` a few words for the call's row (``+3 -1``, ``exit 0``)."""

    text: str
    display: Display | None = None
    is_error: bool = False
    summary: str = ""
    attachments: tuple[Image | Document, ...] = ()
    error: ErrorInfo | None = None
    changes: StateChange | None = None
    artifact: str | None = None
    """Reference of the stored result, ``data/<hash>``, if ``text`` is only a part of it."""
    kind: Kind = "text"
    meta: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def exit_status(self) -> int | None:
        """Return the exit code of the command in the display; None if no command ended."""
        return self.display.exit_code if isinstance(self.display, CommandText) else None

    @property
    def failed(self) -> bool:
        """Return whether the call or its command failed. Rows, plans, memory and reports all use this."""
        return self.is_error or (isinstance(self.display, CommandText) and self.display.broke)

    def output(self, call_id: str, *, skill: bool = False) -> ToolOutput:
        """Return the output block that answers call ``call_id``. ``skill``: the call started a skill."""
        return ToolOutput(
            *(call_id, self.text, self.is_error, self.attachments, self.exit_status, self.error, skill),
            failed=self.display.failed if isinstance(self.display, CommandText) else None,
        )


@frozen
class Artifact:
    """A stored result: ``ref`` is ``data/<hash>``, ``size`` in bytes, ``summary`` describes the content. ``expired``:
    the clean-up deleted the file; only this record is left."""

    ref: str
    size: int
    lines: int
    kind: Kind = "text"
    summary: str = ""
    expired: bool = False


@frozen
class TextPage:
    """A part of a stored result: bytes ``offset`` to ``upto`` of ``size``, from line ``line`` on. The next part begins
    at ``upto``. ``text`` is the raw tool output: not safe to paint."""

    text: str
    line: int
    offset: int
    upto: int
    size: int

    @property
    def last(self) -> bool:
        return self.upto >= self.size


@frozen
class LineMatch:
    """A matching line, shortened around the match. Lines are 1-based, ``offset`` in bytes."""

    line: int
    offset: int
    text: str


_SUGGESTIONS: dict[str, str] = {
    "timeout": "Try again with a longer timeout, or do less in one call.",
    "rate_limit": "Wait before trying again.",
    "resource_error": "Free the resource or ask for less, then try again.",
    "transient_error": "Try again.",
    "permission_denied": "Do not repeat the call. Use another way, or ask the user.",
    "invalid_parameters": "Correct the arguments as the message says and call again.",
    "not_found": "Check the name; list or search first.",
    "validation_error": "Correct what the message names and call again.",
    "execution_error": "Read the message; change the approach before trying again.",
    "internal_error": "Do not repeat the same call; use another tool or tell the user.",
    "dependency_error": "Something the tool needs is missing; tell the user what to install.",
    "interrupted": "Ask the user before going on.",
}


_SHORT: dict[str, str] = {
    "timeout": "timed out",
    "rate_limit": "rate limit reached",
    "resource_error": "out of resources",
    "transient_error": "failed for now",
    "permission_denied": "denied",
    "invalid_parameters": "bad arguments",
    "validation_error": "bad arguments",
    "execution_error": "failed",
    "dependency_error": "something is missing",
}
"""Texts for rows by kind of failure."""


def failed_how(kind: str) -> str:
    """Return a failure of ``kind`` in two or three words for people."""
    return _SHORT.get(kind, kind.replace("_", " "))


def failure_text(error: ErrorInfo, call_id: str = "") -> str:
    """Return the text of a failure for the model; ``call_id`` of the failed call, once known."""
    head, end = failure_frame(error, call_id)
    return "\n".join((*head, f"Error Message: {error.message}", *end))


def failure_frame(error: ErrorInfo, call_id: str = "") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the lines of a failure's text before its message, and those after it."""
    code = (f"Error Code: {error.code}",) if error.code else ()
    call = (f"Tool Call ID: {call_id}",) if call_id else ()
    suggestion = f"Suggestion: {error.hint or _SUGGESTIONS.get(error.kind, 'Read the message.')}"
    return ("Operation failed.", f"Error Type: {error.kind}", *code), (*call, *suggestion.split("\n"))


def identified(result: ToolResult, call_id: str) -> ToolResult:
    """Return a failure with its code and the call id in its text; other results unchanged."""
    if result.error is None or not result.is_error:
        return result
    before = failure_text(replace(result.error, code=""))
    return replace(result, text=result.text.replace(before, failure_text(result.error, call_id), 1))


def failure(kind: ErrorKind, message: str, *, hint: str = "", display: Display | None = None) -> ToolResult:
    """Return the result of a failed call: text for the model, and the same as data for people."""
    error = ErrorInfo(kind, message, hint)
    return ToolResult(failure_text(error), display, is_error=True, summary=failed_how(kind), error=error)
