"""What a server sends, matched with the requests that wait: an answer that ba can't use fails its call at once, with a
message that says what the server sent.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import mcp_types as types
from mcp.shared.message import SessionMessage
from mcp_types.version import LATEST_MODERN_VERSION
from pydantic import ValidationError

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import byte_size, one_line
from ba_tui.features.mcp.client.limits import MESSAGE_BYTES, ServerLog, answered_id
from ba_tui.features.mcp.client.mending import LISTINGS, mended
from ba_tui.processes.duplex import ENDS_BYTES

Id: TypeAlias = int | str
PROBE, HANDSHAKE = "server/discover", "initialize"
SHOWN = 120
MOST_NOISE = 20
REMEMBERED = 100
TOO_LARGE = f"larger than {byte_size(MESSAGE_BYTES)}, which is the most that ba reads of an MCP server"
_EVENT_END = regex(rb"\r?\n\r?\n")


class Peek:
    """The size of what comes as the body of a response, its first and its last bytes; of a stream, those of the newest
    event."""

    def __init__(self) -> None:
        self.size, self.ends = 0, (b"", b"")
        self._fresh = True

    def feed(self, piece: bytes, *, events: bool) -> None:
        """Take note of the next piece of a body."""
        first, *others = _EVENT_END.split(piece) if events else (piece,)
        self._add(first)
        for part in others:
            self._fresh = True
            self._add(part)

    def _add(self, part: bytes) -> None:
        if not part:
            return
        if self._fresh:
            self.size, self.ends, self._fresh = 0, (b"", b""), False
        head, tail = self.ends
        self.size += len(part)
        self.ends = ((head + part)[:ENDS_BYTES], (tail + part[-ENDS_BYTES:])[-ENDS_BYTES:])


class ServerMessages:
    """The requests of one connection that wait for an answer, and what is wrong with what comes instead.

    ``left_out``: a line for each item of its listings that can't be read.
    """

    def __init__(self, log: ServerLog, probe_seconds: float) -> None:
        self.log, self.probe_seconds = log, probe_seconds
        self.left_out: dict[str, None] = {}
        self.peeks: dict[Id, Peek] = {}
        """Of the responses to requests over HTTP."""
        self.stream = Peek()
        """Of the one stream of events that older servers answer in."""
        self._open: dict[Id, str] = {}
        """The methods of requests without an answer."""
        self._answered: dict[Id, int] = {}
        self._given_up: dict[Id, None] = {}
        self._strays: list[str] = []
        """What came that answers a request which nobody can name."""
        self._noise = 0
        self._version = LATEST_MODERN_VERSION

    def asked(self, message: types.JSONRPCMessage) -> bool:
        """Take note of what is sent; return whether it is the question that servers of older protocols don't know."""
        if isinstance(message, types.JSONRPCRequest):
            if message.method == HANDSHAKE:
                self._open = {id: method for id, method in self._open.items() if method != PROBE}
            self._open[_id(message.id)] = message.method
            return message.method == PROBE
        if isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._give_up(_id((message.params or {}).get("requestId")))
        return False

    def came(self, message: types.JSONRPCMessage, print_: int = 0) -> list[SessionMessage]:
        """Return what the SDK is given for a message. ``print_``: a hash of its text, which tells repeated answers."""
        if not isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            return [SessionMessage(message)]
        id = _id(message.id)
        if (method := self._open.pop(id, None)) is None:
            return self._unasked(message, id, print_)
        self._answered[id] = print_
        if len(self._answered) > REMEMBERED:
            del self._answered[next(iter(self._answered))]
        peek = self.peeks.pop(id, None)
        if isinstance(message, types.JSONRPCResponse):
            self._mend(method, message.result)
        elif peek and (text := _sdk_refused(message.error, peek)):
            self.log.add(f"ba: {text}")
            message = _error(id, text)
        return [SessionMessage(message), *self._settled()]

    def unreadable(self, size: int, ends: tuple[bytes, bytes], why: str, *, sure: bool = False) -> list[SessionMessage]:
        """Return failures for a text that is no message. ``sure``: it is no print of the server beside its messages."""
        said = described(size, ends, why)
        if not sure and not _is_answer(ends):
            self._noise += 1
            if self._noise <= MOST_NOISE:
                self.log.add(f"stdout, not JSON-RPC: {ends[0][:SHOWN].decode('utf-8', 'replace')}")
            elif self._noise == MOST_NOISE + 1:
                self.log.add("ba: further lines that are not JSON-RPC are left out")
            return []
        self.log.add(f"ba: {said}")
        id = _id(answered_id(ends))
        if id in self._open:
            return self.fail(id, said)
        return [] if id in self._given_up or _is_notice(ends) else self._stray(said)

    def fail(self, id: Id, text: str, code: int = types.INTERNAL_ERROR) -> list[SessionMessage]:
        """Return the failure of a request, if it waits."""
        if id not in self._open:
            return []
        self._give_up(id)
        return [SessionMessage(_error(id, text, code)), *self._settled()]

    def _unasked(self, message: types.JSONRPCMessage, id: Any, print_: int) -> list[SessionMessage]:
        """An answer to no request that waits: late, a second one, or one with a wrong id."""
        shown = one_line(paintable(repr(id), newlines=False), 40)
        if id in self._given_up:
            return []
        if id is not None and self._answered.get(id) == print_:
            self.log.add(f"ba: it answered request {shown} twice; the second answer was left out")
            return []
        text = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        known = "which was answered before" if id in self._answered else "which belongs to no request"
        why = "has no id" if id is None else f"has the id {shown}, {known}"
        said = described(len(text), (text[:ENDS_BYTES], b""), why)
        self.log.add(f"ba: {said}")
        return self._stray(said)

    def _mend(self, method: str, result: dict[str, Any]) -> None:
        if method == HANDSHAKE:
            self._version = str(result.get("protocolVersion"))
        for line in mended(method, result, self._version):
            self.log.add(f"ba: {line}")
            if method in LISTINGS:
                self.left_out[line] = None

    def _stray(self, text: str) -> list[SessionMessage]:
        self._strays.append(text)
        return self._settled()

    def _settled(self) -> list[SessionMessage]:
        """Fail the requests that wait once there are no more of them than answers that belong to none."""
        failed: list[SessionMessage] = []
        if self._strays and len(self._open) <= len(self._strays):
            failed = [SessionMessage(_error(id, self._strays[-1])) for id in self._open]
            for id in tuple(self._open):
                self._give_up(id)
            self._strays.clear()
        return failed

    def _give_up(self, id: Any) -> None:
        if self._open.pop(id, None) is not None:
            self._given_up[id] = None
            self.peeks.pop(id, None)
        if len(self._given_up) > REMEMBERED:
            del self._given_up[next(iter(self._given_up))]


def described(size: int, ends: tuple[bytes, bytes], why: str) -> str:
    """Return in words that an answer can't be used: why, its size, and its first characters, safe to paint."""
    head = ends[0].partition(b"data:")[2] or ends[0] if ends[0].lstrip()[:1] not in {b"{", b"["} else ends[0]
    shown = one_line(paintable(head[: 2 * SHOWN].decode("utf-8", "replace"), newlines=False, reveal=True), SHOWN)
    return f"It sent an answer that {why}: {byte_size(size)}, beginning with {shown}"


def why_unreadable(error: Exception) -> str:
    """Return why a text is no message, as the end of a sentence."""
    if not isinstance(error, ValidationError):
        return f"is no message ({one_line(str(error), SHOWN)})"
    first = error.errors(include_url=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        return f"is not valid JSON ({one_line(first['msg'].removeprefix('Invalid JSON: '), SHOWN)})"
    return "is a batch, which ba did not ask for" if isinstance(first["input"], list) else "is no JSON-RPC message"


def _sdk_refused(error: types.ErrorData, peek: Peek) -> str:
    """Return in words of ours what the SDK says of a response over HTTP that it can't read; else nothing."""
    message = error.message
    if "event exceeded the" in message or ": The answer is larger" in message:
        return described(peek.size, peek.ends, f"is {TOO_LARGE}")
    if error.code != types.PARSE_ERROR or not message.startswith("Failed to parse "):
        return ""
    _, found, why = message.partition("Invalid JSON: ")
    batch = peek.ends[0].partition(b"data:")[2].lstrip().startswith(b"[") or peek.ends[0].lstrip().startswith(b"[")
    if found:
        return described(peek.size, peek.ends, f"is not valid JSON ({one_line(why.partition(' [type=')[0], SHOWN)})")
    return described(
        peek.size, peek.ends, "is a batch, which ba did not ask for" if batch else "is no JSON-RPC message"
    )


def _is_answer(ends: tuple[bytes, bytes]) -> bool:
    """Whether a line that is no message was meant as an answer, and not as a line of a log."""
    head, tail = ends
    if head.lstrip()[:1] not in {b"{", b"["}:
        return False
    keys = head + tail
    return b'"jsonrpc"' in keys or (b'"id"' in keys and (b'"result"' in keys or b'"error"' in keys))


def _is_notice(ends: tuple[bytes, bytes]) -> bool:
    """Whether a broken message is a notification or a request of the server, which answers nothing."""
    head = ends[0][:200]
    return b'"method"' in head and b'"result"' not in head and b'"error"' not in head


def _id(id: Any) -> Any:
    """Return an id in the form in which answers are matched: some servers send numbers back as text."""
    return int(id) if isinstance(id, str) and id.isascii() and id.isdigit() else id


def _error(id: Id, text: str, code: int = types.INTERNAL_ERROR) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=id, error=types.ErrorData(code=code, message=text))
