"""``ba audit``: list every decision about a call, with who made it, when and by which rule."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from ba_tui.cli.config import Cwd, folder_of
from ba_tui.cli.streams import print_line, say
from ba_tui.core.errors import SessionNotFound, UsageError
from ba_tui.core.text.wording import clipped
from ba_tui.core.values import frozen
from ba_tui.resources import folder_slug, places
from ba_tui.sessions.foreign import one_line, redacted
from ba_tui.sessions.records import FILE, Record, forwards, is_record, loads, number
from ba_tui.settings import printable

WIDE = 110
UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def audit(
    session: Annotated[
        str | None, typer.Argument(metavar="SESSION", help="Only this session: its id, a part of the id, or words.")
    ] = None,
    everywhere: Annotated[bool, typer.Option("--all", help="Sessions of all folders.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, oldest first.")] = False,
    tool: Annotated[str | None, typer.Option(metavar="NAME", help="Only calls of this tool.")] = None,
    denied: Annotated[bool, typer.Option("--denied", help="Only denied calls.")] = False,
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Since a date (2026-11-21), or for the last 30m, 12h, 7d.")
    ] = None,
    cwd: Cwd = None,
) -> int:
    """List every decision about a tool call: when, by whom, by which rule. Keys and passwords are left out."""
    after = _since(since) if since else 0.0
    found = Audit()
    decisions = (
        decision
        for decision in found.read(_folders(session, folder_of(cwd), everywhere=everywhere))
        if decision.at >= after
        and (tool is None or decision.tool == tool)
        and (not denied or decision.verdict == "deny")
    )
    if as_json:
        for decision in decisions:
            print_line(json.dumps({**asdict(decision), "at": _iso(decision.at)}, ensure_ascii=True))
    else:
        _table(newest_first(decisions))
    for problem in found.unreadable:
        say(problem)
    if found.damaged:
        lines = "1 damaged line was" if found.damaged == 1 else f"{found.damaged} damaged lines were"
        say(f"{lines} left out; the files were not changed.")
    return 0


def _folders(session: str | None, cwd: Path, *, everywhere: bool) -> Iterable[Path]:
    """Return the folders of the requested sessions, the oldest first."""
    root = places().sessions
    if session is not None:
        return [_one(root, session, cwd)]
    above = root.glob("*") if everywhere else [root / folder_slug(cwd)]
    found = [folder for each in above for folder in each.glob("*") if folder.is_dir()]
    return sorted(found, key=lambda folder: folder.name)


def _one(root: Path, key: str, cwd: Path) -> Path:
    """Find a session by id, else by words as ``ba --resume`` does."""
    if re.fullmatch(r"[0-9a-f-]{3,}", key):
        found = [path for path in root.glob("*/*") if path.name.startswith(key) or path.name.endswith(key)]
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError(f"“{key}” fits {len(found)} sessions.", "Type more of the id.")
    from ba_tui.assembly import connect  # noqa: PLC0415 - an id needs no more than the disk

    try:
        info = connect({}, cwd).library.find(key)
    except SessionNotFound as error:
        raise UsageError(str(error), error.hint) from None
    return next(root.glob(f"*/{info.id}"))


def _since(text: str) -> float:
    now = datetime.now(UTC)
    if span := re.fullmatch(r"(\d{1,6})([mhdw])", text.strip()):
        return (now - timedelta(seconds=int(span[1]) * UNITS[span[2]])).timestamp()
    try:
        return datetime.fromisoformat(text.strip()).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"--since: {text!r} is not a time.", "Such as 2026-11-21, 2026-11-21T14:00, 12h or 7d."
        ) from None


def _table(decisions: Sequence[AuditEntry]) -> None:
    """Print the decisions without columns that have one value, and without the hash in a narrow terminal."""
    if not decisions:
        sys.stderr.write("No decisions. Use --all for all folders.\n")
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    columns: dict[str, Sequence[str]] = {
        "When": [_when(decision.at) for decision in decisions],
        "Session": [decision.session for decision in decisions],
        "Agent": [decision.agent for decision in decisions],
        "Tool": [decision.tool for decision in decisions],
        "Verdict": [decision.verdict for decision in decisions],
        "By": [decision.by for decision in decisions],
        "Arguments": [decision.hash for decision in decisions],
    }
    for name in ("Session", "Agent"):
        if len(set(columns[name])) == 1:
            del columns[name]
    if width and width < WIDE:
        del columns["Arguments"]
        if "Session" in columns:
            columns["Session"] = [decision.session[-4:] for decision in decisions]
    widths = [max(len(name), *map(len, cells)) for name, cells in columns.items()]
    _line([*columns], widths, "About", width)
    for cells, decision in zip(zip(*columns.values(), strict=True), decisions, strict=True):
        _line(cells, widths, _about(decision), width)


def _about(decision: AuditEntry) -> str:
    why = decision.rule or decision.reason
    return f"{decision.target}  ({why})" if why and decision.target else decision.target or why


def _line(cells: Sequence[str], widths: Sequence[int], last: str, width: int) -> None:
    line = printable("  ".join([*(cell.ljust(size) for cell, size in zip(cells, widths, strict=True)), last])).rstrip()
    print_line(clipped(line, width) if width else line)


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


_WANTED = (b'"judged"', b'"tool_started"')


@frozen
class AuditEntry:
    """One decision. ``at``: seconds since the epoch; ``target``: the target of the call, without secrets."""

    at: float
    session: str
    agent: str
    tool: str
    target: str
    verdict: str
    by: str
    rule: str
    reason: str
    hash: str
    call_id: str


@dataclass(slots=True)
class Audit:
    """The decisions of some sessions.

    ``damaged``: number of unreadable lines, complete once all entries were read; ``unreadable``: unreadable files.
    """

    damaged: int = 0
    unreadable: tuple[str, ...] = ()

    def read(self, folders: Iterable[Path]) -> Iterator[AuditEntry]:
        """Yield entries session by session, each oldest first."""
        for folder in folders:
            try:
                yield from self._session(folder)
            except OSError as error:
                self.unreadable += (f"{folder / FILE}: {error.strerror or error}",)

    def _session(self, folder: Path) -> Iterator[AuditEntry]:
        targets: dict[str, str] = {}
        for line in forwards(folder / FILE):
            if not line.endswith(b"\n"):
                # Another process is writing this line; a torn line is completed when the session is next opened.
                return
            if not any(kind in line for kind in _WANTED):
                self.damaged += bool(line.strip()) and not _whole(line)
                continue
            record = loads(line)
            if record is None:
                self.damaged += 1
                continue
            match record.get("type"):
                case "tool_started":
                    targets |= _target(record)
                case "judged":
                    yield _decision(record, folder.name, targets)
                case _:
                    pass


def newest_first(decisions: Iterable[AuditEntry]) -> list[AuditEntry]:
    return sorted(decisions, key=lambda decision: decision.at, reverse=True)


def _whole(line: bytes) -> bool:
    """Return whether a line is complete; cheap for the many irrelevant lines."""
    return (line.startswith(b'{"') and line.endswith(b"}\n")) or is_record(line)


def _target(record: Record) -> dict[str, str]:
    match record:
        case {"call": {"id": str(id)}, "target": str(target)}:
            return {id: target}
        case _:
            return {}


def _decision(record: Record, session: str, targets: dict[str, str]) -> AuditEntry:
    def text(name: str) -> str:
        value: Any = record.get(name)
        return value if isinstance(value, str) else ""

    found = AuditEntry(
        number(record.get("at")),
        session,
        text("agent"),
        text("tool"),
        targets.get(text("call_id"), ""),
        text("verdict"),
        text("by"),
        text("rule"),
        text("reason"),
        text("hash"),
        text("call_id"),
    )
    return replace(
        found,
        target=one_line(redacted(found.target), 1000),
        rule=one_line(redacted(found.rule), 1000),
        reason=one_line(redacted(found.reason), 1000),
    )
