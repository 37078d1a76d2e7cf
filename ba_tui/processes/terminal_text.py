"""Make program output readable: resolve escape sequences and overwritten lines, and cut the middle of long text.
Pure."""

from __future__ import annotations

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count

# A string sequence ends on its line; without its end only the introducer is removed, so that no text is lost.
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
"""Marks lines that were cut out of a text."""


def plain(text: str) -> str:
    """Return ``text`` without escape sequences and control characters, and the last state of overwritten lines."""
    if not _CONTROL.search(text):
        return text
    return _CONTROL.sub("", _overwritten(_SEQUENCE.sub("", text)))


def unescaped(text: str) -> str:
    """Return ``plain`` for text that is not from a terminal: overwritten text stays, a lone carriage return becomes
    ␍."""
    if not _CONTROL.search(text):
        return text
    text = _SEQUENCE.sub("", text).replace("\r\n", "\n").replace("\r", "␍")
    return _CONTROL.sub("", text)


def coloured(text: str) -> str:
    """Return ``plain`` with colours (SGR sequences), for the pane."""
    if not _CONTROL.search(text):
        return text
    kept = _SEQUENCE.sub(lambda match: match.group(0) if _COLOUR.fullmatch(match.group(0)) else "", text)
    return _CONTROL_BUT_ESCAPE.sub("", _overwritten(kept))


def open_sequence(text: str) -> int:
    """Return the start of an incomplete escape sequence at the end of ``text``; its length if there is none."""
    match = _OPEN.search(text, max(0, len(text) - 2100))
    return match.start() if match else len(text)


def _overwritten(text: str) -> str:
    text = text.replace("\r\n", "\n")
    if "\r" not in text:
        return text
    lines = text.split("\n")
    return "\n".join(_last_state(line) if "\r" in line else line for line in lines)


def _last_state(line: str) -> str:
    """Return the final state of a line that was overwritten several times, such as a progress bar."""
    return next((part for part in reversed(line.split("\r")) if part), "")


def cut_away(part: str) -> tuple[int, int]:
    """Return how many lines and characters cutting ``part`` removes, including earlier cuts within it."""
    lines, size = part.count("\n"), len(part)
    for gap in GAP.finditer(part):
        # The mark has its own line end.
        lines += int(gap[1].replace(",", "")) - 1
        size += int(gap[2].replace(",", "")) - len(gap[0]) - 1
    return lines, size


def lines_cut(text: str) -> int:
    """Return how many lines were cut out of ``text``, according to its marks."""
    return sum(int(gap[1].replace(",", "")) for gap in GAP.finditer(text))


def shortened(text: str, limit: int) -> str:
    """Return head and tail of ``text`` within ``limit`` characters, cut at line ends, with the size of the cut."""
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
    """Output of a program: complete while small, otherwise head and tail."""

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
        """Return how many bytes from ``offset`` on are gone, and the remaining ones."""
        tail_start = self.total - len(self._tail)
        if offset >= tail_start:
            return 0, bytes(self._tail[offset - tail_start :])
        if tail_start == len(self._head):
            return 0, bytes(self._head[offset:]) + bytes(self._tail)
        return tail_start - offset, bytes(self._tail)

    def text(self) -> str:
        """Return the output with colours; invalid UTF-8 becomes replacement characters."""
        tail = bytes(self._tail[-self.TAIL :])
        left = self.total - len(self._head) - len(tail)
        if not left:
            return coloured((bytes(self._head) + tail).decode("utf-8", "replace"))
        head = bytes(self._head)
        # Cut at line ends, unless that would remove half of it.
        if (end := head.rfind(b"\n")) > len(head) // 2:
            head = head[: end + 1]
        if 0 <= (start := tail.find(b"\n")) < len(tail) // 2:
            tail = tail[start + 1 :]
        left = self.total - len(head) - len(tail)
        lines = self.lines - head.count(b"\n") - tail.count(b"\n")
        start = "" if head.endswith(b"\n") else "\n"
        note = f"{start}[… {count(lines, 'line')}, {count(left, 'byte')} left out …]\n"
        return coloured(head.decode("utf-8", "replace")) + note + coloured(tail.decode("utf-8", "replace"))
