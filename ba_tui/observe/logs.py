"""The log file: one JSON object a line, redacted, readable by its owner only. Nothing is ever logged to the screen.

What happens in a session is in its journal; the log is for what went wrong around it.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TypeAlias

from ba_tui.core.text.patterns import regex
from ba_tui.resources import Places

# Redaction of log lines is coarse on purpose: a line can lose a word too many. Certain secrets are passed in as
# values.

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
    """``text`` without API keys, tokens, private keys and passwords, as far as their shape gives them away."""
    text = _SHAPES.sub(HIDDEN, text)
    text = _IN_ADDRESS.sub(rf"\1{HIDDEN}\2", text)
    text = _BEARER.sub(rf"\1\2{HIDDEN}", text)
    return _NAMED.sub(rf"\1{HIDDEN}", text)


LOG = "ba.log"
SIZE = 2_000_000
KEPT = 3
LONGEST = 20_000
SHORT = 12
"""Characters: no secret is told by so few, and most words of a line are shorter."""
Redact: TypeAlias = Callable[[str], str]

WHERE: ContextVar[Mapping[str, str]] = ContextVar("where", default={})  # noqa: B039 - never changed, only replaced
"""What the running task works for: ``session``, ``round``, ``agent``, ``call``; stands in every line it logs."""


class JsonLines(logging.Formatter):
    """Control characters end up escaped, because every string is JSON in plain ASCII.

    ``redact`` is asked before our own, coarser look. ``extra={"facts": {…}}`` adds fields to a line.
    """

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
    """Opens on the first record; when that fails, records are dropped without a word."""

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
        """When the file is full, whatever the length of the record: its line is made once, when it is written."""
        return self.stream is not None and os.fstat(self.stream.fileno()).st_size >= self.maxBytes

    def close(self) -> None:
        """What the disk refuses at the end is gone too."""
        with suppress(OSError):
            super().close()

    def handleError(self, record: logging.LogRecord) -> None:
        """A log that can't be written must not disturb what it is about; the doctor says why it can't."""


def start_logging(places: Places, level: str = "info", redact: Redact = str) -> Path:
    """Log to the state folder from now on; says to which file. Calling it again moves the log.

    ``redact`` takes out what is known to be a secret.
    """
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, LogFile)]:
        root.removeHandler(handler)
        handler.close()
    path = places.logs / LOG
    root.addHandler(LogFile(path, redact))
    # Libraries log whole requests when they are let; theirs is kept from warnings on.
    logging.getLogger("ba_tui").setLevel(level.upper())
    return path


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        return f"{record.msg} {record.args}"
