"""The log file: one JSON object per line, redacted, readable by its owner only, never on the screen.

A session records its events in its journal; the log records errors, and one line for each tool call and turn.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TypeAlias

from ba_tui.core.events import Event, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.text.patterns import regex
from ba_tui.resources import UserFolders

# Redaction of log lines is deliberately coarse: it may hide harmless words. Known secrets come from ``redact``.
HIDDEN = "[redacted]"

_SHAPES = regex(
    r"""-----BEGIN[ A-Z]*PRIVATE\ KEY-----.*?(?:-----END[ A-Z]*PRIVATE\ KEY-----|\Z)
    | \b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{16,}
    | \b(?:gh[pousr]_|github_pat_|glpat-|hf_|xox[abposr]-|npm_|pypi-|dop_v1_|ya29\.)[A-Za-z0-9_.-]{10,}
    | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b
    | \bAIza[0-9A-Za-z_-]{30,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*""",
    re.VERBOSE | re.DOTALL,
)
_NAMED = regex(
    r"""(\b[A-Za-z0-9_-]{0,40}(?:api[-_]?key|secret|token|passw(?:or)?d|authorization|x-api-key)["']?\s{0,3}[:=]\s{0,3}["']?
        (?:bearer\s+|basic\s+)?)
        ([^\s"',;&}\]]{6,})""",
    re.VERBOSE | re.IGNORECASE,
)
_BEARER = regex(r"\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]{12,}", re.IGNORECASE)
_IN_ADDRESS = regex(r"(\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{0,200}:)[^\s/@]{1,500}(@)", re.IGNORECASE)


def redacted(text: str) -> str:
    """Return ``text`` without strings that look like API keys, tokens, private keys or passwords."""
    text = _SHAPES.sub(HIDDEN, text)
    text = _IN_ADDRESS.sub(rf"\1{HIDDEN}\2", text)
    text = _BEARER.sub(rf"\1\2{HIDDEN}", text)
    return _NAMED.sub(rf"\1{HIDDEN}", text)


LOG = "ba.log"
SIZE = 2_000_000
KEPT = 3
LONGEST = 20_000
SHORT = 12
"""Characters of a text too short to hold a secret; most texts of a line are shorter."""
Redact: TypeAlias = Callable[[str], str]

WHERE: ContextVar[Mapping[str, str]] = ContextVar("where", default={})  # noqa: B039 - never changed, only replaced
"""Fields of the running task (``session``, ``round``, ``agent``, ``call``), added to each line that it logs."""


class JsonLines(logging.Formatter):
    """Formats a record as JSON in ASCII, which escapes control characters. ``extra={"facts": {…}}`` adds fields."""

    def __init__(self, redact: Redact = str) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "from": record.name,
            "text": self._safe(_message(record)[: 2 * LONGEST])[:LONGEST],
            **WHERE.get(),
        }
        for name, value in getattr(record, "facts", {}).items():
            line[name] = self._safe(value[:LONGEST]) if isinstance(value, str) else value
        if record.exc_info:
            line["trace"] = self._safe(self.formatException(record.exc_info))[-LONGEST:]
        return json.dumps(line, ensure_ascii=True, default=str)

    def _safe(self, text: str) -> str:
        return text if len(text) < SHORT else redacted(self._redact(text))


class LogFile(RotatingFileHandler):
    """Opens its file with the first record, and drops records while the file can't be opened."""

    def __init__(self, path: Path, redact: Redact = str) -> None:
        super().__init__(path, maxBytes=SIZE, backupCount=KEPT, encoding="utf-8", delay=True)
        self.setFormatter(JsonLines(redact))

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        handle = os.open(path, flags, 0o600)
        with suppress(OSError):
            os.fchmod(handle, 0o600)
        return open(handle, "a", encoding="utf-8")

    def shouldRollover(self, record: logging.LogRecord) -> bool:
        """Return whether the file is full. The record's own length is ignored, so that it is formatted only once."""
        return self.stream is not None and os.fstat(self.stream.fileno()).st_size >= self.maxBytes

    def close(self) -> None:
        """Close the file; the last lines are lost if the disk is full."""
        with suppress(OSError):
            super().close()

    def handleError(self, record: logging.LogRecord) -> None:
        """Ignore the error: `ba doctor` reports a log that can't be written."""


def start_logging(places: UserFolders, level: str = "info", redact: Redact = str) -> Path:
    """Start logging to the state folder, or move the log; return the file. ``redact`` removes known secrets."""
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, LogFile)]:
        root.removeHandler(handler)
        handler.close()
    path = places.logs / LOG
    root.addHandler(LogFile(path, redact))
    # Libraries log whole requests at lower levels, so only their warnings are logged.
    logging.getLogger("ba_tui").setLevel(level.upper())
    return path


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        return f"{record.msg} {record.args}"


log = logging.getLogger(__name__)
SOON = 0.05
"""Delay before the lines of calls are written, in seconds."""
TARGET = 200
"""Characters of a call's target."""


Later = Callable[[Callable[[], None]], object]
"""Runs a function later."""


def _now(work: Callable[[], None]) -> None:
    work()


def soon(work: Callable[[], None]) -> None:
    """Run ``work`` on the running loop after a short delay."""
    asyncio.get_running_loop().call_later(SOON, work)


class CallLog:
    """Logs one line for each tool call and turn of a conversation.

    ``apply`` must run in the task that emits the event: it sets the fields of that task's log lines. ``later`` delays
    the lines of calls, so that they do not delay the next request.
    """

    def __init__(self, session: str, later: Later = _now) -> None:
        self._session = session
        self._later = later
        self._finished: list[tuple[Context, ToolStarted, ToolFinished]] = []
        self._round = ""
        self._running: dict[tuple[str, str], ToolStarted] = {}

    def apply(self, event: Event) -> None:
        match event:
            case TurnStarted(prompt=prompt, agent="main"):
                self._round = prompt.id
                self._mark("main")
            case ToolStarted(call=call, agent=agent):
                self._running[agent, call.id] = event
                self._mark(agent, call.id)
            case ToolFinished(call_id=call_id, agent=agent):
                if started := self._running.pop((agent, call_id), None):
                    self._finished.append((copy_context(), started, event))
                    if len(self._finished) == 1:
                        self._later(self._write)
                self._mark(agent)
            case TurnEnded(reason=reason, agent="main"):
                self._write()
                kind = event.error.kind if event.error else ""
                log.info("turn ended", extra={"facts": {"outcome": reason, **({"error": kind} if kind else {})}})
                self._running.clear()
            case _:
                pass

    def _mark(self, agent: str, call: str = "") -> None:
        where = {"session": self._session, "round": self._round, "agent": agent}
        WHERE.set({**where, "call": call} if call else where)

    def _write(self) -> None:
        """Write the lines of all finished calls, each with the fields of its call."""
        finished, self._finished = self._finished, []
        for context, started, event in finished:
            context.run(_log, started, event)


def _log(started: ToolStarted, event: ToolFinished) -> None:
    result = event.result
    failed = (result.error.kind if result.error else "error") if result.failed else ""
    facts = {
        "tool": started.call.name,
        "about": started.target[:TARGET],
        "outcome": failed or "ok",
        "ms": round(event.duration * 1000),
        "characters": len(result.text),
    }
    log.info("tool call", extra={"facts": facts})
