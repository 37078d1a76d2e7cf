"""Results of servers, made readable before the SDK checks them: a bad tool, prompt, resource or block of content loses
only itself, because the SDK would refuse the whole result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, cast, get_args

from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp_types.methods import MONOLITH_RESULTS, SERVER_RESULTS
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION
from pydantic import TypeAdapter, ValidationError

from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import one_line

LISTINGS = {
    "tools/list": ("tools", "tool", "name"),
    "prompts/list": ("prompts", "prompt", "name"),
    "resources/list": ("resources", "resource", "uri"),
    "resources/templates/list": ("resourceTemplates", "resource template", "uriTemplate"),
}
"""Listings: the key of their items, what an item is called, and the key that names it."""
CONTENTS = {"tools/call": "content", "prompts/get": "messages", "resources/read": "contents"}
"""Results with content: the key of its pieces."""
OPTIONAL = frozenset({"_meta", "annotations", "description", "execution", "icons", "mimeType", "size", "title"})
"""Keys that an item can do without."""
NAME_CHARS, WHY_CHARS = 80, 120


def mended(method: str, result: dict[str, Any], version: str) -> list[str]:
    """Take out of a result, in place, what the SDK can't read; return a line for each thing that was left out.

    An unreadable piece of content is replaced by a text that names it, so the model hears of it as well.
    """
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
    """Return why the SDK drops a tool for its headers, which it does without a word."""
    if method != "tools/list" or version != LATEST_MODERN_VERSION:
        return ""
    why = find_invalid_x_mcp_header(item["inputSchema"])
    shown = one_line(paintable(why or "", newlines=False), WHY_CHARS)
    return f"its header annotations are not valid ({shown})" if shown else ""


def _no_object(tool: dict[str, Any]) -> str:
    """Say in a tool's schema that its arguments are an object, which they always are; return why it describes none."""
    # Results are checked by nobody but the model: checking a large one would hold up the screen.
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
    """Remove optional keys that can't be read; return a line for each."""
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
    """Bring the result of a tool into a form that the agreed version knows, without loss."""
    data = result.get("structuredContent")
    if "content" not in result and data is not None:
        result["content"] = []
    content: Any = result.get("content")
    if handshake and data is not None and not isinstance(data, dict) and isinstance(content, list):
        # Older versions know objects only.
        cast("list[Any]", content).append({"type": "text", "text": json.dumps(result.pop("structuredContent"))})


def _replaced(method: str, key: str, version: str, piece: Any, why: str) -> tuple[dict[str, Any], str]:
    """Return a piece of content without what can't be read, and a line for what was left out."""
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
    """Return a piece of content without what says nothing to a model."""
    inner = {name: _plain(cast("Mapping[str, Any]", value)) for name, value in piece.items() if isinstance(value, dict)}
    return {name: value for name, value in {**piece, **inner}.items() if name not in {"_meta", "annotations", "icons"}}


def _unreadable(method: str, key: str, version: str, item: Any) -> str:
    """Return why an item of a result can't be read; empty when it can."""
    for reader in _readers(method, key, version):
        try:
            reader.validate_python(item, by_name=False)
        except ValidationError as error:
            return _why(error, item)
    return ""


def _why(error: ValidationError, item: Any) -> str:
    if not isinstance(item, dict):
        return "it is no object"
    # A union has the failures of all its members: those of the member with the right type are meant.
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
    """What reads one item below ``key``: the SDK checks results by their version, then by a type for all versions."""
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
