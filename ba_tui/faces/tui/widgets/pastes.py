"""Long pastes folded to one token and unfolded on sending; and what is taken out of foreign text first.

Pure text work. How a token behaves under the cursor is the prompt's business.
"""

from __future__ import annotations

from urllib.parse import unquote

from ba_tui.core.messages import clean_text
from ba_tui.core.text.patterns import regex

MANY_LINES = 10
MANY_CHARACTERS = 1_000
TOKEN = regex(r"\[Pasted #(\d+) (?:\+\d+ lines|\d+ characters)\]")
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
    """The folded pastes of one prompt, by number."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}
        self._count = 0

    def fold(self, text: str) -> str:
        """The token that stands for ``text``, or the text itself when it is short."""
        lines = text.count("\n") + (not text.endswith("\n"))
        if lines <= MANY_LINES and len(text) <= MANY_CHARACTERS:
            return text
        self._count += 1
        self._texts[self._count] = text
        size = f"+{lines} lines" if lines > 1 else f"{len(text)} characters"
        return f"[Pasted #{self._count} {size}]"

    def unfold(self, text: str) -> str:
        """``text`` with every token of ours replaced by what it stands for."""
        if not self._texts or "[Pasted #" not in text:
            return text
        return TOKEN.sub(lambda token: self._texts.get(int(token[1]), token[0]), text)

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Where tokens of ours stand in ``line``."""
        if not self._texts:
            return []
        return [token.span() for token in TOKEN.finditer(line) if int(token[1]) in self._texts]

    def clear(self) -> None:
        self._texts.clear()
        self._count = 0
