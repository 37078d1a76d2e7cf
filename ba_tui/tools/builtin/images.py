"""Pictures for read_file: their size from the header, and the picture itself for a model that sees.

Nothing is decoded or scaled here.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.messages import Image
from ba_tui.core.results import ToolResult
from ba_tui.core.text.wording import byte_size
from ba_tui.core.values import frozen
from ba_tui.tools.failed import Failed
from ba_tui.tools.modalities import ATTACHED, Modalities

SMALLER = "Make a smaller copy, for example: magick IN.png -resize 2000x2000 OUT.png."
LONGEST_SIDE = 8_000
"""Pixels; providers refuse what is larger."""
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_ALONE = {0x01, *range(0xD0, 0xD9)}


@frozen
class Picture:
    media_type: str
    width: int
    height: int

    @property
    def shown(self) -> str:
        return f"a {self.media_type.removeprefix('image/').upper()} image, {self.width}×{self.height} pixels"


def is_picture(head: bytes) -> bool:
    """Whether a file that starts with ``head`` is a picture that models can be shown."""
    return head.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")) or (
        head.startswith(b"RIFF") and head[8:12] == b"WEBP"
    )


def read_picture(data: bytes, shown: str, modalities: Modalities) -> ToolResult:
    """The picture as an attachment. Raises Failed for what can't be shown, saying what it is."""
    picture = measured(data)
    if picture is None:
        message = f"{shown} begins like a picture, but its header is broken ({byte_size(len(data))})."
        raise Failed("validation_error", message, "Create it again, or open it with another program.")
    what = f"{shown} is {picture.shown}, {byte_size(len(data))}"
    if not modalities.pictures():
        raise Failed(
            "validation_error",
            f"{what}. The model in use can't see pictures.",
            "Say what it shows in words, or choose a model that sees pictures: /model.",
        )
    if why := _too_large(picture, len(data)):
        raise Failed("resource_error", f"{what}; {why}.", SMALLER)
    return ToolResult(
        f"{what}. It is attached.",
        summary=f"{picture.width}×{picture.height}",
        attachments=(attached(picture, data),),
    )


def kept_picture(folder: Path, data: bytes) -> str:
    """Write a picture into ``folder`` of the session; its name there, as it is mentioned.

    Raises:
        UsageError: no model can be shown it. StorageError: it can't be written.
    """
    picture = measured(data)
    if picture is None:
        raise UsageError("This picture is not a PNG, JPEG, GIF or WebP file.", "Convert it to PNG.")
    if why := _too_large(picture, len(data)):
        raise UsageError(f"The picture has {byte_size(len(data))}; {why}.", SMALLER)
    name = f"image-{hashlib.sha256(data).hexdigest()[:8]}.{picture.media_type.removeprefix('image/')}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o600)
    except OSError as error:
        raise StorageError(
            f"The picture can't be kept: {error.strerror or error}.", "Make room on the disk."
        ) from error
    return f"{folder.name}/{name}"


def _too_large(picture: Picture, size: int) -> str:
    """Why models can't be shown it; empty when they can."""
    if size <= ATTACHED and max(picture.width, picture.height) <= LONGEST_SIDE:
        return ""
    return f"models can be shown at most {byte_size(ATTACHED)} and {LONGEST_SIDE} pixels a side"


def attached(picture: Picture, data: bytes) -> Image:
    return Image(picture.media_type, base64.b64encode(data).decode("ascii"))


def pixels(data: bytes) -> tuple[int, int] | None:
    """Width and height of a picture; None when its header can't be read."""
    picture = measured(data)
    return (picture.width, picture.height) if picture else None


def measured(data: bytes) -> Picture | None:
    """Kind and size of a picture; None when its header can't be read."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
        return _picture("png", _big(data, 16, 4), _big(data, 20, 4))
    if data.startswith((b"GIF87a", b"GIF89a")):
        return _picture("gif", _little(data, 6, 2), _little(data, 8, 2))
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _webp(data)
    return _jpeg(data) if data.startswith(b"\xff\xd8\xff") else None


def _picture(kind: str, width: int, height: int) -> Picture | None:
    return Picture(f"image/{kind}", width, height) if width and height else None


def _webp(data: bytes) -> Picture | None:
    match data[12:16]:
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            return _picture("webp", _little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF)
        case b"VP8L" if data[20:21] == b"\x2f" and len(data) >= 25:
            bits = _little(data, 21, 4)
            return _picture("webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8X" if len(data) >= 30:
            return _picture("webp", _little(data, 24, 3) + 1, _little(data, 27, 3) + 1)
        case _:
            return None


def _jpeg(data: bytes) -> Picture | None:
    """Its segments are passed over until the one that begins the frame and holds the size."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in _FRAMES:
            return _picture("jpeg", _big(data, at + 7, 2), _big(data, at + 5, 2))
        if marker == 0xFF:
            at += 1
        else:
            at += 2 if marker in _ALONE else 2 + max(2, _big(data, at + 2, 2))
    return None


def _big(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big")


def _little(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
