"""Long pastes and pictures as one token each, unfolded on sending; and what is taken out of foreign text first.

Pure text work. How a token behaves under the cursor is the prompt's business.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from ba_tui.core.messages import clean_text
from ba_tui.core.text.patterns import regex

MANY_LINES = 10
MANY_CHARACTERS = 1_000
TOKEN = regex(r"\[(?:Pasted #(\d+) (?:\+\d+ lines|\d+ characters)|Image (\d+))\]")
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
LONGEST_PATH = 1_000
_ESCAPED = regex(r"\\(.)")
_CONTROLS = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(127, 160)))
_ESCAPES = regex(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def cleaned(text: str) -> str:
    """``text`` as it may stand in the prompt: no escape sequences or control characters, ``\\n`` line ends."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    text = clean_text(text).replace("\r\n", "\n").replace("\r", "\n")
    return text if text.isprintable() else text.translate(_CONTROLS)


def names_something(text: str) -> bool:
    """Whether ``text`` may mention something: by an ``@``, a picture's chip, or the path of a picture."""
    return "@" in text or "[Image " in text or ("/" in text and any(kind in text.lower() for kind in PICTURES))


def takes_pictures(text: str) -> bool:
    """Whether a prompt that begins with ``text`` may hold a picture: no command does."""
    return not text.startswith(("/", "!"))


def dropped_picture(text: str) -> str:
    """The absolute path when ``text`` is what a terminal gives for a picture that was dropped on it; else empty."""
    text = text.strip()
    if len(text) > LONGEST_PATH or "\n" in text:
        return ""
    if text.startswith("file://"):
        path = unquote(text.removeprefix("file://"))
    elif text[:1] in {"'", '"'} and text.endswith(text[0]):
        path = text[1:-1]
    else:
        path = text if " " in _ESCAPED.sub("", text) else _ESCAPED.sub(r"\1", text)
    return path if path.startswith("/") and path.lower().endswith(PICTURES) else ""


class Pastes:
    """The folded pastes and the pictures of one prompt, by number."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}
        self._count = 0
        self._pictures: dict[int, str] = {}

    def fold(self, text: str) -> str:
        """The token that stands for ``text``, or the text itself when it is short."""
        lines = text.count("\n") + (not text.endswith("\n"))
        if lines <= MANY_LINES and len(text) <= MANY_CHARACTERS:
            return text
        self._count += 1
        self._texts[self._count] = text
        size = f"+{lines} lines" if lines > 1 else f"{len(text)} characters"
        return f"[Pasted #{self._count} {size}]"

    def picture(self, name: str) -> str:
        """The token that stands for a mention of the picture ``name``."""
        number = len(self._pictures) + 1
        self._pictures[number] = f'@"{name}"' if any(map(str.isspace, name)) else f"@{name}"
        return f"[Image {number}]"

    def unfold(self, text: str) -> str:
        """``text`` with every token of ours replaced by what it stands for."""
        if not (self._texts or self._pictures) or "[" not in text:
            return text
        return TOKEN.sub(lambda token: self._stands_for(token) or token[0], text)

    def _stands_for(self, token: re.Match[str]) -> str:
        """Empty for a token that is not ours."""
        return self._texts.get(int(token[1]), "") if token[1] else self._pictures.get(int(token[2]), "")

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Where tokens of ours stand in ``line``."""
        if not (self._texts or self._pictures):
            return []
        return [token.span() for token in TOKEN.finditer(line) if self._stands_for(token)]

    def clear(self) -> None:
        self._texts.clear()
        self._pictures.clear()
        self._count = 0
