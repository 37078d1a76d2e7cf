"""Failures of servers and of the way to them, as ours: one line of what happened, one of what to do."""

from __future__ import annotations

import asyncio
import errno
from typing import cast

import httpx2
import mcp_types as types
from mcp import MCPError
from mcp.client import InputRequiredRoundsExceededError
from pydantic import ValidationError

from ba_tui.core.errors import BaError
from ba_tui.core.ports.mcp import LoginNeeded, McpError
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import one_line, sentence
from ba_tui.core.values import frozen

TEXT_CHARS = 300


@frozen
class Seen:
    """What is known of the server ``name``: the ``status`` of its newest response (0: none), and why it ended."""

    name: str
    status: int = 0
    why: str = ""


def failure(error: BaseException, seen: Seen, what: str = "") -> BaError:
    """Return ``error`` as ours. ``what`` failed; empty for the connection itself."""
    error = _innermost(error)
    if isinstance(error, BaError):
        return error
    if seen.status == 401:
        fix = f"Log in: ba mcp login {seen.name}, or /mcp."
        return LoginNeeded(f"The MCP server {seen.name} wants you to log in.", fix)
    if seen.status in {403, 404, 405} and not what:
        words = {403: "refuses access (403)", 404: "has no MCP endpoint at this address (404)"}
        text = words.get(seen.status, f"refuses requests of this kind ({seen.status})")
        return McpError(f"The server {text}.", f"Check its address and headers: ba mcp get {seen.name}.")
    why = one_line(paintable(_words(error, seen), newlines=False), TEXT_CHARS)
    return McpError(sentence(f"{what[:1].upper()}{what[1:]} failed: {why}" if what else why), hint(seen.name))


def hint(name: str) -> str:
    """Return where a person finds what a server said."""
    return f"See what it printed: /mcp, or ba mcp test {name}."


def _words(error: BaseException, seen: Seen) -> str:
    match error:
        case MCPError():
            gone = error.code == types.CONNECTION_CLOSED and seen.why
            return seen.why if gone else error.message
        case InputRequiredRoundsExceededError():
            return "It asked for more and more input."
        case ValidationError():
            return "It answered with something that the protocol does not allow."
        case OSError() | httpx2.HTTPError():
            return _network_words(error)
        case _:
            return str(error) or type(error).__name__


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", error).exceptions
        error = next((each for each in inner if not isinstance(each, asyncio.CancelledError)), inner[0])
    return error


def _network_words(error: OSError | httpx2.HTTPError) -> str:
    causes: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and len(causes) < 20:
        causes.append(at)
        at = at.__cause__ or at.__context__
    if any(isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED for cause in causes):
        return "The address refuses connections"
    if isinstance(error, httpx2.TimeoutException):
        return "It did not answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or "The connection broke off"
