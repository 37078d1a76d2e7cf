"""What programs print, made safe to read: escape sequences and overwritten lines resolved, long text cut in its middle.

Pure; running the programs is children.py's.
"""

from __future__ import annotations

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count

# A string sequence ends on its own line; without its end only the introducer goes, so that nothing is swallowed.
_BODY = r"[^\x07\x1b\x90\x98\x9c-\x9f\n]*(?:\x07|\x1b\\|\x9c)"
_SEQUENCE = regex(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    rf"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]){_BODY}"
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b[0-~]?"
)
_COLOUR = regex(r"\x1b\[[0-9;:]*m")
_CONTROL = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_CONTROL_BUT_ESCAPE = regex(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]")
_OPEN = regex(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b\n]{0,2000}\x1b?|[PX^_][^\x1b\n]{0,2000}\x1b?|[ -/]*)\Z")
GAP = regex(r"\[… ([\d,]+) \w+, ([\d,]+) (?:character|byte)s? left out[^\n]* …\]")
"""The words in the place of lines that were cut out of a text."""
_SUSPECT = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """``text`` without escape sequences and control characters; of overwritten lines the last state."""
    if not _SUSPECT.search(text):
        return text
    return _CONTROL.sub("", _overwritten(_SEQUENCE.sub("", text)))


def unescaped(text: str) -> str:
    """As ``plain``, for text that is no terminal's: nothing is overwritten, a lone carriage return shows as ␍."""
    if not _SUSPECT.search(text):
        return text
    text = _SEQUENCE.sub("", text).replace("\r\n", "\n").replace("\r", "␍")
    return _CONTROL.sub("", text)


def coloured(text: str) -> str:
    """The same with colours (SGR sequences) kept, for the pane."""
    if not _SUSPECT.search(text):
        return text
    kept = _SEQUENCE.sub(lambda match: match.group(0) if _COLOUR.fullmatch(match.group(0)) else "", text)
    return _CONTROL_BUT_ESCAPE.sub("", _overwritten(kept))


def open_sequence(text: str) -> int:
    """Where an escape sequence begins that ``text`` breaks off in; its length when none does."""
    match = _OPEN.search(text, max(0, len(text) - 2100))
    return match.start() if match else len(text)


def _overwritten(text: str) -> str:
    text = text.replace("\r\n", "\n")
    if "\r" not in text:
        return text
    lines = text.split("\n")
    return "\n".join(_last_state(line) if "\r" in line else line for line in lines)


def _last_state(line: str) -> str:
    """What a line that was written over several times (a progress bar) shows in the end."""
    return next((part for part in reversed(line.split("\r")) if part), "")


def cut_away(part: str) -> tuple[int, int]:
    """How many lines and characters are gone when ``part`` is cut out of a text, with those that had been cut out of
    ``part`` before."""
    lines, size = part.count("\n"), len(part)
    for gap in GAP.finditer(part):
        # The words end with a line end of their own.
        lines += int(gap[1].replace(",", "")) - 1
        size += int(gap[2].replace(",", "")) - len(gap[0]) - 1
    return lines, size


def lines_cut(text: str) -> int:
    """How many lines were cut out of ``text``, by the words in their place."""
    return sum(int(gap[1].replace(",", "")) for gap in GAP.finditer(text))


def shortened(text: str, limit: int) -> str:
    """Head and tail of ``text`` within ``limit`` characters, cut at line ends, saying how much is left out."""
    if len(text) <= limit:
        return text
    room = max(0, limit - 100)
    head, tail = text[: room // 2], text[len(text) - (room - room // 2) :]
    if (end := head.rfind("\n")) > len(head) // 2:
        head = head[: end + 1]
    if 0 <= (start := tail.find("\n")) < len(tail) // 2:
        tail = tail[start + 1 :]
    lines, size = cut_away(text[len(head) : len(text) - len(tail)])
    how = f"{count(lines, 'line')}, {count(size, 'character')}" if lines else count(size, "character")
    return f"{head}{'' if head.endswith(chr(10)) else chr(10)}[… {how} left out …]\n{tail}"


class Capture:
    """What a program printed: all of it while small, head and tail of a flood."""

    HEAD = 64_000
    TAIL = 192_000

    def __init__(self) -> None:
        self.total = 0
        self.lines = 0
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        self.lines += data.count(b"\n")
        room = self.HEAD - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self.TAIL:
            del self._tail[: -self.TAIL]

    def after(self, offset: int) -> tuple[int, bytes]:
        """How many of the bytes from ``offset`` on are gone, and those from there on that are not."""
        tail_start = self.total - len(self._tail)
        if offset >= tail_start:
            return 0, bytes(self._tail[offset - tail_start :])
        if tail_start == len(self._head):
            return 0, bytes(self._head[offset:]) + bytes(self._tail)
        return tail_start - offset, bytes(self._tail)

    def text(self) -> str:
        """As text with colours; what is no UTF-8 shows as replacement characters."""
        tail = bytes(self._tail[-self.TAIL :])
        left = self.total - len(self._head) - len(tail)
        if not left:
            return coloured((bytes(self._head) + tail).decode("utf-8", "replace"))
        head = bytes(self._head)
        # At line ends, unless a long line would cost half of it.
        if (end := head.rfind(b"\n")) > len(head) // 2:
            head = head[: end + 1]
        if 0 <= (start := tail.find(b"\n")) < len(tail) // 2:
            tail = tail[start + 1 :]
        left = self.total - len(head) - len(tail)
        lines = self.lines - head.count(b"\n") - tail.count(b"\n")
        start = "" if head.endswith(b"\n") else "\n"
        note = f"{start}[… {count(lines, 'line')}, {count(left, 'byte')} left out …]\n"
        return coloured(head.decode("utf-8", "replace")) + note + coloured(tail.decode("utf-8", "replace"))
