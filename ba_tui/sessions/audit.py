"""Lists decisions about calls: the Judged events of a session file, each with its call.

Reads only, also while another process writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ba_tui.core.values import frozen
from ba_tui.sessions.foreign import one_line, redacted
from ba_tui.sessions.records import FILE, Record, forwards, is_record, loads, number

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
