"""What a tool gives back: text for the model, a Display for people, a state change for the session."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Annotated, Any, Literal, TypeAlias

from ba_tui.core.displays.charts import Chart
from ba_tui.core.displays.plans import PlanGraph
from ba_tui.core.errors import ErrorInfo, ErrorKind
from ba_tui.core.messages import ByType, Document, Image, ToolOutput
from ba_tui.core.values import frozen
from ba_tui.core.work import ActiveSkill, Todo


@frozen
class Diff:
    """A change of one file. ``before`` is None when the file is new; both texts use ``\\n`` line ends."""

    path: str
    before: str | None
    after: str
    type: Literal["diff"] = "diff"


@frozen
class Diffs:
    """Changes of several files that were made as one."""

    items: tuple[Diff, ...]
    type: Literal["diffs"] = "diffs"


@frozen
class CommandText:
    """A command and what it printed, colours included. ``exit_code`` is None while unknown (preview, killed).

    ``lines``: how many it printed, where ``output`` is only a part; else 0. ``failed``: how the statuses of its parts
    were judged, None where the exit code says as much.
    """

    command: str
    cwd: str = ""
    output: str = ""
    exit_code: int | None = None
    lines: int = 0
    type: Literal["command"] = "command"
    failed: bool | None = None

    @property
    def broke(self) -> bool:
        """Whether it failed. Rows, plans, memory and reports ask ``ToolResult.failed``."""
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
    """A script of a skill with what it is given: ``path`` is the script's, ``args`` its arguments, ``stdin`` what it
    reads on standard input, as text or the JSON value it stands for; ``text`` is its source."""

    path: str
    args: tuple[str, ...]
    stdin: Any
    text: str
    type: Literal["script_call"] = "script_call"


@frozen
class Table:
    """``handle``: the result of a query (R1) that ``rows`` are the first of; it has ``total`` rows. ``warnings``: lines
    to read before a number of it is believed."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    type: Literal["table"] = "table"
    handle: str = ""
    total: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def length(self) -> int:
        """Rows of all of it."""
        return max(self.total, len(self.rows))


@frozen
class Prose:
    """Plain text, or Markdown when ``markdown``."""

    text: str
    markdown: bool = False
    type: Literal["prose"] = "prose"


@frozen
class Todos:
    items: tuple[Todo, ...]
    type: Literal["todos"] = "todos"


OutputLevel: TypeAlias = Literal["brief", "standard", "full"]
"""How much of a result the model is given."""

Kind: TypeAlias = Literal["text", "json", "table", "listing", "hits"]
"""What a result's text is made of, and so how it is shortened."""

Display: TypeAlias = Annotated[
    Diff | Diffs | CommandText | Source | ScriptCall | Table | Chart | Prose | PlanGraph | Todos, ByType()
]


@frozen
class SeenFile:
    """What the conversation knows of a file: the ``digest`` of its bytes when it was last read or written (BLAKE2b, 16
    bytes in hex), and the stretches of lines, counted from 0, that were never shown."""

    path: str
    digest: str
    unread: tuple[tuple[int, int], ...] = ()


@frozen
class StateChange:
    """What a result changes in the session; folded with the result, so both are there or neither."""

    todos: tuple[Todo, ...] | None = None
    cwd: str | None = None
    skills: tuple[ActiveSkill, ...] | None = None
    """The activation stack, the outermost skill first."""
    seen: tuple[SeenFile, ...] = ()


UNREAD = "unread_lines"
"""In ``meta``: how many lines in the middle of the text the model was not given; 0: it was given a summary."""


@frozen
class ToolResult:
    """``text`` is the observation for the model, ``summary`` a few words for the pane's row (``+3 -1``, ``exit 0``)."""

    text: str
    display: Display | None = None
    is_error: bool = False
    summary: str = ""
    attachments: tuple[Image | Document, ...] = ()
    error: ErrorInfo | None = None
    changes: StateChange | None = None
    artifact: str | None = None
    """Reference of the stored whole, ``data/<hash>``, when ``text`` is only a part of it."""
    kind: Kind = "text"
    meta: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def exit_status(self) -> int | None:
        """That of the command which the result shows; None where no command ended."""
        return self.display.exit_code if isinstance(self.display, CommandText) else None

    @property
    def failed(self) -> bool:
        """Whether the call failed, or the command that it ran: the one answer for rows, plans, memory and reports."""
        return self.is_error or (isinstance(self.display, CommandText) and self.display.broke)

    def output(self, call_id: str, *, skill: bool = False) -> ToolOutput:
        """Return the observation that answers the call ``call_id``. ``skill``: the call started a skill."""
        return ToolOutput(
            *(call_id, self.text, self.is_error, self.attachments, self.exit_status, self.error, skill),
            failed=self.display.failed if isinstance(self.display, CommandText) else None,
        )


@frozen
class Artifact:
    """A stored result: ``ref`` is ``data/<hash>``, ``size`` in bytes, ``summary`` what it is made of.
    ``expired``: the clean-up has taken the file away, and only this is left."""

    ref: str
    size: int
    lines: int
    kind: Kind = "text"
    summary: str = ""
    expired: bool = False


@frozen
class TextPage:
    """A part of a stored result: its bytes from ``offset`` up to ``upto``, of ``size``; it begins in line ``line``.
    The next part begins at ``upto``. ``text`` is as the tool gave it: not yet safe to paint."""

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
    """A line that was searched for, shortened around what was found. Lines count from 1, ``offset`` in bytes."""

    line: int
    offset: int
    text: str


_SUGGESTIONS: dict[str, str] = {
    "timeout": "Try again with a longer timeout, or do less in one call.",
    "rate_limit": "Wait before trying again.",
    "resource_error": "Free the resource or ask for less, then try again.",
    "transient_error": "Try again.",
    "permission_denied": "Do not repeat the call. Use another way, or ask the person.",
    "invalid_parameters": "Correct the arguments as the message says and call again.",
    "not_found": "Check the name; list or search first.",
    "validation_error": "Correct what the message names and call again.",
    "execution_error": "Read the message; change the approach before trying again.",
    "internal_error": "Do not repeat the same call; use another tool or tell the person.",
    "dependency_error": "Something the tool needs is missing; tell the person what to install.",
    "interrupted": "Ask the person before going on.",
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
"""What a row says of a kind of failure."""


def failed_how(kind: str) -> str:
    """Return a failure of ``kind`` in two or three words for people."""
    return _SHORT.get(kind, kind.replace("_", " "))


def failure_text(error: ErrorInfo, call_id: str = "") -> str:
    """Return the one text in which a model reads a failure; ``call_id`` of the call that failed, once it is known."""
    head, end = failure_frame(error, call_id)
    return "\n".join((*head, f"Error Message: {error.message}", *end))


def failure_frame(error: ErrorInfo, call_id: str = "") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the lines of a failure's text before its message, and those after it."""
    code = (f"Error Code: {error.code}",) if error.code else ()
    call = (f"Tool Call ID: {call_id}",) if call_id else ()
    suggestion = f"Suggestion: {error.hint or _SUGGESTIONS.get(error.kind, 'Read the message.')}"
    return ("Operation failed.", f"Error Type: {error.kind}", *code), (*call, *suggestion.split("\n"))


def identified(result: ToolResult, call_id: str) -> ToolResult:
    """Return a failure with its code and the call's id in its text; any other result as it is."""
    if result.error is None or not result.is_error:
        return result
    before = failure_text(replace(result.error, code=""))
    return replace(result, text=result.text.replace(before, failure_text(result.error, call_id), 1))


def failure(kind: ErrorKind, message: str, *, hint: str = "", display: Display | None = None) -> ToolResult:
    """The one shape of a failed call: what the model reads, and the same as data for people."""
    error = ErrorInfo(kind, message, hint)
    return ToolResult(failure_text(error), display, is_error=True, summary=failed_how(kind), error=error)
