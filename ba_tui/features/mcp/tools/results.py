"""What a server answers, as a result of a tool: text for the model, pictures where it sees them, the rest described.

Long texts are stored and shortened by the guards, as those of all tools.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any, cast

from ba_tui.core.messages import Image
from ba_tui.core.results import Prose, ToolResult, failure
from ba_tui.core.text.untrusted import legible
from ba_tui.core.text.wording import byte_size, count, one_line
from ba_tui.features.mcp.client.values import RemotePart, RemoteResult
from ba_tui.tools.builtin.images import LONGEST_SIDE, attached, measured
from ba_tui.tools.modalities import ATTACHED, Modalities

MOST_PICTURES = 10
URI_CHARS = 300


def tool_result(answer: RemoteResult, modalities: Modalities) -> ToolResult:
    """Return ``answer`` for the model and the person. Decodes pictures: call it off the event loop."""
    text, pictures = read_parts(answer, modalities)
    if answer.is_error:
        return failure("execution_error", text.strip() or "The server says that it failed, and no more.")
    data = _json(text)
    summary = ", ".join(filter(None, (_size(text), count(len(pictures), "picture") if pictures else "")))
    if not text.strip() and not pictures:
        return ToolResult("The server gave an empty result.", summary="empty")
    kind = "text" if data is None else "json"
    return ToolResult(text, Prose(text), summary=summary, attachments=tuple(pictures), kind=kind)


def read_parts(answer: RemoteResult, modalities: Modalities) -> tuple[str, list[Image]]:
    """Return the text of all parts, and the pictures that go with it."""
    pictures: list[Image] = []
    said = [_told(part, pictures, modalities.pictures) for part in answer.parts]
    text = "\n\n".join(piece for piece in said if piece)
    if answer.structured is not None and not _stands_for(text, answer):
        whole = json.dumps(answer.structured, ensure_ascii=False)
        text = f"{text}\n\nThe same as data:\n{whole}" if text else whole
    # What a person can't see, a model must not be told.
    return legible(text), pictures


def _stands_for(text: str, answer: RemoteResult) -> bool:
    """Whether the text says what the structured content does, as servers are asked to do."""
    data, given = _json(text), answer.structured
    if data is not None and (data == given or {"result": data} == given):
        return True
    inner: Any = cast("dict[str, Any]", given).get("result") if isinstance(given, dict) else None
    return given == {"result": inner} and text in {str(inner), json.dumps(inner, ensure_ascii=False)}


def _told(part: RemotePart, pictures: list[Image], sees: Callable[[], bool]) -> str:
    match part.kind:
        case "text":
            return part.text
        case "link":
            kind = f", {part.media_type}" if part.media_type else ""
            return f"[resource {one_line(part.uri, URI_CHARS)}{kind}: {part.text}]"
        case "image":
            return _picture(part, pictures, sees)
        case "audio":
            return (
                f"[audio, {part.media_type}, {byte_size(len(part.data) * 3 // 4)}: left out, models here can't hear it]"
            )
        case "resource":
            head = f"[{one_line(part.uri, URI_CHARS)}{f', {part.media_type}' if part.media_type else ''}]"
            if not part.data:
                return f"{head}\n{part.text}"
            if part.media_type.startswith("image/"):
                return f"{head}\n{_picture(part, pictures, sees)}"
            return f"{head}\n[{byte_size(len(part.data) * 3 // 4)} that are no text: left out]"


def _picture(part: RemotePart, pictures: list[Image], sees: Callable[[], bool]) -> str:
    """The picture as words, and itself into ``pictures`` where the model may be shown it."""
    try:
        data = base64.b64decode(part.data, validate=True)
    except (binascii.Error, ValueError):
        return "[a picture that is not valid base64: left out]"
    picture = measured(data)
    if picture is None:
        return f"[a picture that is no PNG, JPEG, GIF or WebP ({part.media_type}): left out]"
    what = f"{picture.shown}, {byte_size(len(data))}"
    if not sees():
        return f"[{what}: left out, the model in use can't see pictures]"
    if len(data) > ATTACHED or max(picture.width, picture.height) > LONGEST_SIDE or len(pictures) >= MOST_PICTURES:
        return f"[{what}: left out, it is too large or one of too many]"
    pictures.append(attached(picture, data))
    return f"[{what}: attached]"


def _json(text: str) -> Any:
    if text[:1] not in {"{", "["}:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _size(text: str) -> str:
    lines = text.count("\n") + 1
    return "" if not text else one_line(text, 60) if lines == 1 and len(text) <= 60 else count(lines, "line")
