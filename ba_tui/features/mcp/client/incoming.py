"""Messages of a server, matched with the waiting requests: an unusable answer fails its call immediately, with a
message that describes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeAlias, cast, get_args

import mcp_types as types
from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp.shared.message import SessionMessage
from mcp_types.methods import MONOLITH_RESULTS, SERVER_RESULTS
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION
from pydantic import TypeAdapter, ValidationError

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import byte_size, one_line
from ba_tui.features.mcp.client.values import MESSAGE_BYTES, ServerLog, answered_id
from ba_tui.processes.duplex import ENDS_BYTES

LISTINGS = {
    "tools/list": ("tools", "tool", "name"),
    "prompts/list": ("prompts", "prompt", "name"),
    "resources/list": ("resources", "resource", "uri"),
    "resources/templates/list": ("resourceTemplates", "resource template", "uriTemplate"),
}
"""Listings: the key of their items, the noun for an item, and the key with its name."""
CONTENTS = {"tools/call": "content", "prompts/get": "messages", "resources/read": "contents"}
"""Results with content: the key of its pieces."""
OPTIONAL = frozenset({"_meta", "annotations", "description", "execution", "icons", "mimeType", "size", "title"})
"""Keys that an item can lack."""
NAME_CHARS, WHY_CHARS = 80, 120


def mended(method: str, result: dict[str, Any], version: str) -> list[str]:
    """Remove unreadable parts of a result, in place, because the SDK would refuse the whole result; return a line for
    each. An unreadable piece of content is replaced by a text that names it, so that the model knows of it as well."""
    handshake = version in HANDSHAKE_PROTOCOL_VERSIONS
    version = "2025-11-25" if handshake else LATEST_MODERN_VERSION
    if method in LISTINGS:
        return _listing(method, result, version)
    key = CONTENTS.get(method, "")
    if method == "tools/call":
        _as_content(result, handshake=handshake)
    if not isinstance(pieces := result.get(key), list):
        return []
    said: list[str] = []
    for place, piece in enumerate(cast("list[Any]", pieces)):
        if why := _unreadable(method, key, version, piece):
            pieces[place], note = _replaced(method, key, version, piece, why)
            said.append(note)
    return said


def _listing(method: str, result: dict[str, Any], version: str) -> list[str]:
    key, noun, naming = LISTINGS[method]
    if not isinstance(items := result.get(key), list):
        return []
    kept: list[Any] = []
    said: list[str] = []
    for raw in cast("list[Any]", items):
        item = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
        name = one_line(paintable(str(item.get(naming) or "(no name)"), newlines=False, reveal=True), NAME_CHARS)
        why = "it is no object"
        if item:
            why = _no_object(item) if method == "tools/list" else ""
            said += [f"{noun} {name}: {text}" for text in _without_bad_keys(method, key, version, item)]
            why = why or _unreadable(method, key, version, item) or _bad_header(method, version, item)
        if why:
            said.append(f"{noun} {name}: left out: {why}")
        else:
            kept.append(item)
    result[key] = kept
    return said


def _bad_header(method: str, version: str, item: Mapping[str, Any]) -> str:
    """Return why the SDK silently drops a tool for its headers."""
    if method != "tools/list" or version != LATEST_MODERN_VERSION:
        return ""
    why = find_invalid_x_mcp_header(item["inputSchema"])
    shown = one_line(paintable(why or "", newlines=False), WHY_CHARS)
    return f"its header annotations are not valid ({shown})" if shown else ""


def _no_object(tool: dict[str, Any]) -> str:
    """Mark a tool's schema as an object, which arguments always are; return why it can't be one."""
    # Only the model reads results: validating a large one would freeze the screen.
    tool.pop("outputSchema", None)
    if not isinstance(given := tool.get("inputSchema"), dict):
        return "its parameters have no schema"
    schema = cast("dict[str, Any]", given)
    kind: Any = schema.get("type")
    kinds = cast("list[Any]", kind) if isinstance(kind, list) else [kind]
    if "object" in kinds or kinds == [None]:
        schema["type"] = "object"
        return ""
    shown = one_line(paintable(", ".join(map(str, kinds)), newlines=False), NAME_CHARS)
    return f"its schema describes no object (its type is {shown!r})"


def _without_bad_keys(method: str, key: str, version: str, item: dict[str, Any]) -> list[str]:
    """Remove unreadable optional keys; return a line for each."""
    said: list[str] = []
    for reader in _readers(method, key, version):
        try:
            reader.validate_python(item, by_name=False)
        except ValidationError as error:
            named = dict.fromkeys(str(each["loc"][0]) for each in error.errors(include_url=False) if each["loc"])
            bad = [name for name in named if name in OPTIONAL and item.pop(name, None) is not None]
            said += [f"its field {name!r} was ignored, because its value is not valid" for name in bad]
    return said


def _as_content(result: dict[str, Any], *, handshake: bool) -> None:
    """Convert the result of a tool to the agreed protocol version, without loss."""
    data = result.get("structuredContent")
    if "content" not in result and data is not None:
        result["content"] = []
    content: Any = result.get("content")
    if handshake and data is not None and not isinstance(data, dict) and isinstance(content, list):
        # Older versions allow objects only.
        cast("list[Any]", content).append({"type": "text", "text": json.dumps(result.pop("structuredContent"))})


def _replaced(method: str, key: str, version: str, piece: Any, why: str) -> tuple[dict[str, Any], str]:
    """Return a piece of content without unreadable parts, and a line for each."""
    given = dict(cast("Mapping[str, Any]", piece)) if isinstance(piece, dict) else {}
    plain = _plain(given)
    if given and not _unreadable(method, key, version, plain):
        return plain, f"{method}: annotations of a piece of content were ignored, because they are not valid"
    inner = given.get("content") if method == "prompts/get" else given
    kind = cast("Mapping[str, Any]", inner).get("type") if isinstance(inner, dict) else None
    shown = one_line(paintable(str(kind), newlines=False, reveal=True), NAME_CHARS)
    what = f"content of type {shown!r}" if kind is not None else "content"
    note = f"{what} was left out, because ba can't read it: {why}"
    block = {"type": "text", "text": f"[{note}]"}
    if method == "resources/read":
        return {"uri": str(given.get("uri") or "unknown:"), "text": block["text"]}, f"{method}: {note}"
    if method == "prompts/get":
        role = given.get("role") if given.get("role") in {"user", "assistant"} else "user"
        return {"role": role, "content": block}, f"{method}: {note}"
    return block, f"{method}: {note}"


def _plain(piece: Mapping[str, Any]) -> dict[str, Any]:
    """Return a piece of content without keys that mean nothing to a model."""
    inner = {name: _plain(cast("Mapping[str, Any]", value)) for name, value in piece.items() if isinstance(value, dict)}
    return {name: value for name, value in {**piece, **inner}.items() if name not in {"_meta", "annotations", "icons"}}


def _unreadable(method: str, key: str, version: str, item: Any) -> str:
    """Return why an item of a result is unreadable; empty if it is not."""
    for reader in _readers(method, key, version):
        try:
            reader.validate_python(item, by_name=False)
        except ValidationError as error:
            return _why(error, item)
    return ""


def _why(error: ValidationError, item: Any) -> str:
    if not isinstance(item, dict):
        return "it is no object"
    # A union reports the failures of all its members: keep those of the member with the right type.
    found = error.errors(include_url=False, include_context=False, include_input=False)
    members: dict[str, list[tuple[str, str, bool]]] = {}
    for each in found:
        loc = [str(part) for part in each["loc"]]
        member = loc.pop(0) if loc and loc[0][:1].isupper() else ""
        at = ".".join(part for part in loc if not part[:1].isupper())
        members.setdefault(member, []).append((at, each["msg"], each["type"] == "literal_error"))
    fitting = [each for each in members.values() if not any(at == "type" and wrong for at, _, wrong in each)]
    if not fitting:
        return "its type is unknown"
    at, message, _ = fitting[0][0]
    return one_line(paintable(f"{at}: {message}" if at else message, newlines=False), WHY_CHARS)


@cache
def _readers(method: str, key: str, version: str) -> tuple[TypeAdapter[Any], ...]:
    """Return the validators of items below ``key``: the SDK validates results by their version, then by a type for all
    versions."""
    return tuple(
        TypeAdapter(get_args(field.annotation)[0])
        for known in (SERVER_RESULTS.get((method, version)), MONOLITH_RESULTS.get(method))
        for option in (get_args(known) or (known,))
        for name, field in getattr(option, "model_fields", {}).items()
        if key in {name, field.alias} or key == _camel(name)
    )


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


Id: TypeAlias = int | str
PROBE, HANDSHAKE = "server/discover", "initialize"
SHOWN = 120
MOST_NOISE = 20
REMEMBERED = 100
TOO_LARGE = f"larger than {byte_size(MESSAGE_BYTES)}, which is the most that ba reads of an MCP server"
_EVENT_END = regex(rb"\r?\n\r?\n")


class Peek:
    """The size of a response body, its first and its last bytes; of a stream, those of the newest event."""

    def __init__(self) -> None:
        self.size, self.ends = 0, (b"", b"")
        self._fresh = True

    def feed(self, piece: bytes, *, events: bool) -> None:
        """Record the next piece of a body."""
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
    """The waiting requests of one connection, and the handling of unusable messages. ``left_out``: a line for each
    unreadable item of its listings."""

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
        """Record a sent message; return whether it is the probe that servers of older protocols don't know."""
        if isinstance(message, types.JSONRPCRequest):
            if message.method == HANDSHAKE:
                self._open = {id: method for id, method in self._open.items() if method != PROBE}
            self._open[_id(message.id)] = message.method
            return message.method == PROBE
        if isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._give_up(_id((message.params or {}).get("requestId")))
        return False

    def came(self, message: types.JSONRPCMessage, print_: int = 0) -> list[SessionMessage]:
        """Return the SDK's input for a message. ``print_``: a hash of its text, which identifies repeated answers."""
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
        """Return failures for a text that is not a message. ``sure``: it is not diagnostic output of the server."""
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
        """Return the failure of a request, if it is waiting."""
        if id not in self._open:
            return []
        self._give_up(id)
        return [SessionMessage(_error(id, text, code)), *self._settled()]

    def _unasked(self, message: types.JSONRPCMessage, id: Any, print_: int) -> list[SessionMessage]:
        """Handle an answer to no waiting request: a late one, a duplicate, or one with a wrong id."""
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
        """Fail all waiting requests once the unmatched answers are at least as many."""
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
    """Return why an answer is unusable, its size, and its first characters, safe to display."""
    head = ends[0].partition(b"data:")[2] or ends[0] if ends[0].lstrip()[:1] not in {b"{", b"["} else ends[0]
    shown = one_line(paintable(head[: 2 * SHOWN].decode("utf-8", "replace"), newlines=False, reveal=True), SHOWN)
    return f"It sent an answer that {why}: {byte_size(size)}, beginning with {shown}"


def why_unreadable(error: Exception) -> str:
    """Return why a text is not a message, as the end of a sentence."""
    if not isinstance(error, ValidationError):
        return f"is no message ({one_line(str(error), SHOWN)})"
    first = error.errors(include_url=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        return f"is not valid JSON ({one_line(first['msg'].removeprefix('Invalid JSON: '), SHOWN)})"
    return "is a batch, which ba did not ask for" if isinstance(first["input"], list) else "is no JSON-RPC message"


def _sdk_refused(error: types.ErrorData, peek: Peek) -> str:
    """Return in our words the SDK's error about an unreadable HTTP response; "" for other errors."""
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
    """Return whether an invalid line was meant as an answer, not as a line of a log."""
    head, tail = ends
    if head.lstrip()[:1] not in {b"{", b"["}:
        return False
    keys = head + tail
    return b'"jsonrpc"' in keys or (b'"id"' in keys and (b'"result"' in keys or b'"error"' in keys))


def _is_notice(ends: tuple[bytes, bytes]) -> bool:
    """Return whether a broken message is a notification or a request of the server, not an answer."""
    head = ends[0][:200]
    return b'"method"' in head and b'"result"' not in head and b'"error"' not in head


def _id(id: Any) -> Any:
    """Return an id in the form used for matching: some servers send numbers back as text."""
    return int(id) if isinstance(id, str) and id.isascii() and id.isdigit() else id


def _error(id: Id, text: str, code: int = types.INTERNAL_ERROR) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=id, error=types.ErrorData(code=code, message=text))
