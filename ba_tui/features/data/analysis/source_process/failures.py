"""Failures of a source as one line and a hint, without the secrets of its address."""

from __future__ import annotations

from collections.abc import Iterable

from ba_tui.core.text.wording import one_line
from ba_tui.processes.serving import HandlerFailed

LONGEST = 300


def failed(message: str, hint: str = "", kind: str = "validation_error") -> HandlerFailed:
    """A query that is wrong, or exceeds a limit."""
    return HandlerFailed(f"query_failed:{kind}", f"{one_line(message, LONGEST)}\n{hint}")


def unreachable(message: str, hint: str = "") -> HandlerFailed:
    """A source that can't be used."""
    return HandlerFailed("source_failed", f"{one_line(message, LONGEST)}\n{hint}")


def cleaned(error: HandlerFailed, secrets: Iterable[str]) -> HandlerFailed:
    """``error`` without any of ``secrets``."""
    text = str(error)
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    return HandlerFailed(error.kind, text)


def first_line(error: BaseException) -> str:
    """What ``error`` says, without the lines that point into the statement."""
    text = str(error).strip() or type(error).__name__
    return text.split("\n", 1)[0].strip()
