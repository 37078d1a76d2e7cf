"""Every record but prose as painted lines: prompts, tool rows, thoughts, notices, ends.

Only looks: which state a call is in, and what its result is, the record says.
"""

from __future__ import annotations

from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from ba_tui.core.results import ToolResult, failed_how
from ba_tui.core.text.cells import clip, clip_middle
from ba_tui.core.text.figures import DOUBTFUL, FigureReport
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.displays.renderer import renderer_of
from ba_tui.faces.tui.meters import money, short_count, short_duration
from ba_tui.faces.tui.roster import AgentSpace
from ba_tui.faces.tui.roster import below as agents_below
from ba_tui.faces.tui.roster import head as agents_head
from ba_tui.faces.tui.transcript.lines import (
    PaintedLine,
    PreviewSpace,
    Rows,
    Segments,
    Unit,
    first_lines,
    last_lines,
    missing,
    printed_lines,
    wrapped,
)
from ba_tui.faces.tui.transcript.markdown import MEASURE, plain, plain_lines
from ba_tui.faces.tui.transcript.palette import Palette
from ba_tui.faces.tui.transcript.records import (
    OPEN,
    Compaction,
    End,
    MemoryNote,
    NoticeRecord,
    Prompt,
    ProseRecord,
    Record,
    Retry,
    Thought,
    ToolRow,
    unread,
)

MESSAGE = 4
"""Rows of the output that are replaced by the reason of a failure."""


def preview(record: ToolRow, space: PreviewSpace) -> list[PaintedLine]:
    """Return at most ``space.limit`` rows, and one about parts that the model did not get; none if the folded row says
    enough.
    """
    result = record.result
    if result is None:
        return last_lines(record.tail, space, printed_lines(space)) if space.unfolded else []
    reason = _reason(record, result, space)
    shown = _result(result, space._replace(limit=max(1, space.limit - len(reason))))
    lines = [*shown, *reason]
    if words := unread(result):
        words = clip(words, space.width, space.palette.glyphs.more)
        lines.append(PaintedLine((Segment(words, space.palette.dim),), unit=Unit("")))
    if not lines and space.unfolded:
        return plain("No output.", space.width, space.palette.dim)
    return lines


def _reason(record: ToolRow, result: ToolResult, space: PreviewSpace) -> Rows:
    """Return why a call failed or was denied, unless its row says that."""
    error = result.error
    if error is None or (not space.unfolded and (record.refused or record.state == "cancelled")):
        return []
    room = space._replace(width=min(space.width, MEASURE), limit=MESSAGE if result.display else space.limit)
    lines = first_lines(error.message, room, plain_lines(room, space.palette.failed))
    if error.hint and space.unfolded:
        lines += plain(error.hint, room.width, space.palette.dim)
    return lines


def _result(result: ToolResult, space: PreviewSpace) -> Rows:
    if result.display is not None:
        renderer = renderer_of(result.display)
        if renderer.quiet and not space.unfolded:
            return []
        space = space._replace(limit=max(space.limit, renderer.folded_rows))
        lines = renderer.preview(result.display, space)
        if len(lines) <= space.limit:
            return lines
        kept = max(1, space.limit - 1)
        return [*lines[:kept], missing(f"{count(len(lines) - kept, 'more line')} below", space)]
    # What a user's own tool returns comes without a display and without a summary.
    if result.error is not None or (result.summary and not space.unfolded):
        return []
    words = space._replace(width=min(space.width, MEASURE))
    return first_lines(result.text, words, plain_lines(words, space.palette.text))


GUTTER = 2
"""Cells for a record's sign and the space behind it."""
NAME = 11
SHOWN = 12
"""Rows of a prompt or of notes that are shown once they are cut."""
FOLDED, UNFOLDED = 5, 30
"""Rows below a call: folded, and after Space or a click."""
LONG = 4_000
"""Characters of a prompt or a notice that are shown in the flow; the rest opens with Enter."""
FIGURES = "/verify"
"""The command that shows where figures come from."""
JOINING = "Sent. The model reads this after the current step."
PATHS = ("path", "file_path")


class Look(NamedTuple):
    """How wide, in which styles, at which second of the clock."""

    width: int
    palette: Palette
    now: float

    @property
    def room(self) -> int:
        """The cells for text, at most a readable measure."""
        return max(8, min(self.width - GUTTER, MEASURE))

    @property
    def indent(self) -> Segments:
        return (Segment(" " * GUTTER, self.palette.text),)


def rows(record: Record, look: Look, *, expanded: bool) -> list[PaintedLine]:
    match record:
        case Prompt():
            return _prompt(record, look)
        case ToolRow():
            return _tool(record, look, expanded=expanded)
        case Thought():
            return _thought(record, look, expanded=expanded)
        case NoticeRecord(text=text, level=level, hint=hint):
            style = {"info": look.palette.dim, "warning": look.palette.warning, "error": look.palette.failed}[level]
            return _said(getattr(look.palette.glyphs, level), text, hint, look, style)
        case MemoryNote(text=text, hint=hint):
            return _said(look.palette.glyphs.info, text, hint, look, look.palette.dim)
        case Compaction():
            return _compaction(record, look, expanded=expanded)
        case Retry(reason=reason, until=until, attempt=attempt, attempts=attempts):
            wait = max(0, round(until - look.now))
            what, place = ("Retrying", f" ({attempt} of {attempts})") if attempts else ("Next request", "")
            hint = f"{what} in {wait} s{place}. Esc stops." if wait else f"{what}…"
            return _said(look.palette.glyphs.retry, reason, hint, look, look.palette.warning)
        case End():
            return _end(record, look)
        case ProseRecord():
            return []


def _sign(sign: str, style: Style) -> Segments:
    return (Segment(sign + " " * (GUTTER - cell_len(sign)), style),)


def _signed(lines: list[PaintedLine], sign: Segments, look: Look) -> list[PaintedLine]:
    return [line._replace(gutter=look.indent if at else sign) for at, line in enumerate(lines)]


def _prompt(record: Prompt, look: Look) -> list[PaintedLine]:
    palette = look.palette
    sign = palette.glyphs.steered if record.steered else palette.glyphs.prompt
    lines = plain(record.text[:LONG], look.room, palette.prompt)
    if len(record.text) > LONG or len(lines) > 2 * SHOWN:
        left = record.text.count("\n", len(record.text[:LONG])) + max(0, len(lines) - SHOWN)
        more = f"{palette.glyphs.more} {count(max(1, left), 'more line')} below: Enter opens all"
        lines = [*lines[:SHOWN], PaintedLine((Segment(more, palette.prompt),), unit=Unit(""))]
    notes = [f"[{paintable(name, newlines=False)}]" for name in record.attached]
    notes += [clip(JOINING, look.room, palette.glyphs.more)] if record.unread else []
    lines += [PaintedLine((Segment(note, palette.prompt),), unit=Unit("")) for note in notes]
    blank = (Segment(" " * GUTTER, palette.prompt),)
    first = _sign(sign, palette.prompt_mark)
    return [line._replace(gutter=blank if at else first, fill=palette.prompt) for at, line in enumerate(lines)]


def _tool(record: ToolRow, look: Look, *, expanded: bool) -> list[PaintedLine]:
    palette = look.palette
    # An agent that was stopped has a report all the same, and so the call succeeds.
    state = record.agents[0].state if len(record.agents) == 1 and record.state == "ok" else record.state
    sign = getattr(palette.glyphs, state)
    if state == "running":
        frames = palette.glyphs.spinner
        sign = frames[int(look.now) % len(frames)]
    tone = getattr(palette, state, palette.dim)
    edge = (*look.indent, Segment(palette.glyphs.column + " ", palette.rule))
    if record.agents:
        return _agents(record, look, (_sign(sign, tone), edge), expanded=expanded)
    line = PaintedLine(_tool_words(record, look), _sign(sign, tone), Unit(_tool_source(record)))
    if record.state in OPEN and not expanded:
        return [line]
    room = max(8, look.width - GUTTER - 2)
    space = PreviewSpace(room, palette, UNFOLDED if expanded else FOLDED, unfolded=expanded)
    return [line, *(item._replace(gutter=(*edge, *item.gutter)) for item in preview(record, space))]


def _agents(record: ToolRow, look: Look, gutters: tuple[Segments, Segments], *, expanded: bool) -> list[PaintedLine]:
    """Return the agents that work on it and their activities; unfolded, the result too."""
    sign, edge = gutters
    space = AgentSpace(look.room, look.palette, look.now)
    name = paintable(_short(record.name), newlines=False)
    first = PaintedLine(agents_head(record.agents, name, record.target, space), sign, Unit(_tool_source(record)))
    space = space._replace(width=max(8, look.room - 2))
    lines = [
        PaintedLine(words, edge, Unit("".join(part.text for part in words).rstrip()))
        for words in agents_below(record.agents, space, everything=expanded)
    ]
    if not expanded or record.result is None:
        return [first, *lines]
    shown = preview(record, PreviewSpace(max(8, look.width - GUTTER - 2), look.palette, UNFOLDED, unfolded=True))
    return [first, *lines, *(item._replace(gutter=(*edge, *item.gutter)) for item in shown)]


def _tool_source(record: ToolRow) -> str:
    return paintable(f"{record.name} {record.target[:LONG]}".rstrip(), newlines=False)


def _tool_words(record: ToolRow, look: Look) -> Segments:
    """Return name and target in columns, then the outcome, and the time at the right edge."""
    palette, room, more = look.palette, look.room, look.palette.glyphs.more
    name = clip(paintable(_short(record.name), newlines=False), max(NAME, room // 4), more)
    name += " " * (NAME - cell_len(name))
    spent = look.now - record.started if record.state == "running" and record.started else record.duration
    timed = short_duration(max(0.0, spent)) if spent > 0 and record.state not in ("queued", "waiting") else ""
    room -= cell_len(name) + 1 + 8
    said = paintable(_outcome(record)[:LONG], newlines=False)
    target = paintable(record.target[:LONG], newlines=False)
    short = clip_middle if record.args and any(name in record.args for name in PATHS) else clip
    wanted = cell_len(said)
    kept = max(min(cell_len(target), room - wanted - 2), room // 2)
    target = short(target, kept, more)
    said = clip(said, max(0, room - cell_len(target) - 2), more)
    space = " " * max(0, room - cell_len(target) - cell_len(said))
    tone = palette.dim if record.state in ("ok", "queued", "running") else getattr(palette, record.state, palette.dim)
    return (
        Segment(name + " ", palette.name),
        Segment(target, palette.target),
        Segment(space, palette.text),
        Segment(said, tone),
        Segment(timed.rjust(8), palette.dim),
    )


def _short(name: str) -> str:
    """Return the tool ``mcp__server__tool`` as ``server:tool``; any other as it is."""
    return name.removeprefix("mcp__").replace("__", ":", 1) if name.startswith("mcp__") else name


def _outcome(record: ToolRow) -> str:
    match record.state:
        case "waiting":
            return "waiting for you"
        case "queued":
            return record.summary or "queued"
        case "running":
            tail = record.tail[-400:].rstrip().replace("\r", "\n").rsplit("\n", 1)[-1].strip()
            return tail or record.summary
        case "denied":
            return f"denied: {record.note}" if record.note else "denied by you" if record.refused else "denied"
        case "failed":
            error = record.result.error if record.result else None
            kind = error.kind if error else "failed"
            # Sessions of an older ba have the name of the kind.
            said = failed_how(kind) if record.summary in {"", kind.replace("_", " ")} else record.summary
            return ", ".join((*_marks(record), said))
        case "cancelled":
            return "interrupted"
        case "ok":
            return ", ".join((*_marks(record), record.summary or _size(record)))


def _marks(record: ToolRow) -> list[str]:
    """Return what a row says before its outcome: in words, so that nothing hangs on a colour."""
    result = record.result
    meta = result.meta if result else {}
    retries = result.error.retries if result and result.error else meta.get("retries", 0)
    marks = (
        [f"from cache, {short_duration(float(meta['cached_s']))} old"] if isinstance(meta.get("cached_s"), int) else []
    )
    if isinstance(retries, int) and retries:
        marks.append(count(retries, "retry"))
    if meta.get("slow"):
        marks.append("slow tool")
    if meta.get("partial"):
        marks.append("partial output")
    return marks


def _size(record: ToolRow) -> str:
    size = len(record.result.text) if record.result else 0
    return f"{size / 1000:.1f} KB" if size >= 1000 else ""


def _thought(record: Thought, look: Look, *, expanded: bool) -> list[PaintedLine]:
    palette = look.palette
    sign = _sign(palette.glyphs.thought, palette.dim)
    if expanded:
        return _signed(plain(record.text.strip(), look.room, palette.thought), sign, look)
    text = paintable(record.text.strip())
    count = text.count("\n") + 1
    lines = text.rsplit("\n", 1)[-1:] if record.open else text.split("\n", 1)[:1]
    head = "Thinking" if record.open else "Thought"
    tally = f" ({count} lines)" if count > 1 else ""
    room = look.room - cell_len(head) - cell_len(tally) - 2
    words = clip(lines[0].strip().strip("*#").expandtabs(1), room, palette.glyphs.more)
    segments = (Segment(f"{head}{tally}  ", palette.dim), Segment(words, palette.thought))
    return [PaintedLine(segments, sign, Unit(text))]


WAYS = {
    "truncate": "oldest rounds removed",
    "extract": "by rules",
    "summarize": "with a summary",
}


def _compaction(record: Compaction, look: Look, *, expanded: bool) -> list[PaintedLine]:
    """Return one line of figures; unfolded, what was retained and how the notes begin."""
    palette = look.palette
    sizes = f"{short_count(record.before)} to {short_count(record.after)} tokens"
    if record.strategy == "undo":
        head, more = "Compression undone", (sizes,)
    else:
        cost = money(record.cost) if record.cost != 0 else ""
        head, more = "Compressed", (sizes, WAYS[record.strategy], cost)
    words = f"{head}: {f' {palette.glyphs.info} '.join(part for part in more if part)}"
    kept = f"Kept: {record.kept}" if record.kept else ""
    sign = _sign(palette.glyphs.compressed, palette.dim)
    text = paintable(f"{words}\n{kept}".rstrip())
    if not expanded:
        return [PaintedLine((Segment(clip(words, look.room, palette.glyphs.more), palette.dim),), sign, Unit(text))]
    lines = [*plain(words, look.room, palette.dim), *(plain(kept, look.room, palette.dim) if kept else [])]
    notes = plain(record.notes[:LONG].strip(), look.room, palette.thought) if record.notes else []
    lines += notes[:SHOWN]
    if len(notes) > SHOWN or len(record.notes) > LONG:
        lines.append(
            PaintedLine((Segment(f"{palette.glyphs.more} more below: Enter opens all", palette.dim),), unit=Unit(""))
        )
    return _signed(lines, sign, look)


def _said(sign: str, text: str, hint: str, look: Look, style: Style) -> list[PaintedLine]:
    lines = plain(text[:LONG], look.room, style)
    if hint:
        lines += plain(hint, look.room, look.palette.dim)
    return _signed(lines, _sign(sign, style), look)


def _end(record: End, look: Look) -> list[PaintedLine]:
    glyphs, palette = look.palette.glyphs, look.palette
    if record.reason == "done":
        calls = f" {glyphs.info} {record.calls} tool call{'s' * (record.calls != 1)}" if record.calls else ""
        words = Segment(f"{short_duration(record.seconds)}{calls}", palette.dim)
        return [PaintedLine((words,), look.indent, Unit(""))]
    if record.error is not None and record.reason == "cancelled":
        return _said(glyphs.cancelled, record.error.message, "What should I do instead?", look, palette.denied)
    if record.error is not None:
        return _said(glyphs.failed, record.error.message, record.error.hint, look, palette.failed)
    said = {
        "cancelled": "Interrupted by you.",
        "interrupted": "Interrupted.",
        "limit": "Stopped at a limit.",
        "error": "The turn ended with an error.",
    }[record.reason]
    return _said(glyphs.cancelled, said, "What should I do instead?", look, palette.denied)


def partial(text: str, look: Look) -> list[PaintedLine]:
    """Return the mark under an answer that is not whole."""
    words = wrapped([Segment(f"{look.palette.glyphs.more} {text}", look.palette.denied)], look.room)
    return [PaintedLine(segments, look.indent, Unit("")) for segments, _ in words]


def figure_footer(report: FigureReport, look: Look) -> list[PaintedLine]:
    """Return the line below an answer with the number of figures by source; doubtful ones are highlighted."""
    palette = look.palette
    runs: list[Segment] = []
    for at, part in enumerate((*report.parts, FIGURES)):
        loud = part.endswith((*DOUBTFUL, "changed since"))
        runs += [Segment(f" {palette.glyphs.info} ", palette.dim)] if at else []
        runs.append(Segment(part, palette.warning if loud else palette.dim))
    return [PaintedLine(segments, look.indent, Unit("")) for segments, _ in wrapped(runs, look.room)]


def lively(record: Record) -> bool:
    """Return whether the rows of ``record`` change with time."""
    return isinstance(record, Retry) or (isinstance(record, ToolRow) and record.open)
