"""The strict YAML that skills begin with: keys with plain, quoted or folded text, maps and plain lists. No script.

Lists in brackets, anchors, tags and tabs are refused, as the reference validator refuses them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from workspace import Args

KEY = re.compile(r"( *)([^\s:#'\"\[\]{}&*!|>%@`,][^:#]*?|\"[^\"]*\"|'[^']*') *:(?: +(.*)|)$")


class Wrong(Exception):
    """Why the front matter cannot be read."""


def parsed(text: str) -> tuple[Args, str]:
    """The fields and the body; the first "---" after the start ends the fields, as the reference has it."""
    parts = text.split("---", 2)
    if not text.startswith("---"):
        raise Wrong("SKILL.md must begin with a line ---, then name and description")
    if len(parts) < 3:
        raise Wrong("the front matter is not closed by a line ---")
    lines = Lines(parts[1].splitlines())
    fields = mapping(lines, 0)
    if not fields:
        raise Wrong("the front matter holds no fields")
    return fields, parts[2].strip()


class Lines:
    """The lines that mean something, with their numbers in the file."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.place = 0

    def next(self) -> str | None:
        while self.place < len(self.lines) and not self.lines[self.place].split("#", 1)[0].strip():
            self.place += 1
        return self.lines[self.place] if self.place < len(self.lines) else None

    def wrong(self, why: str) -> Wrong:
        return Wrong(f"line {self.place + 1}: {why}")

    def deeper(self, depth: int, blank: bool = False) -> Iterator[str]:
        """The lines that follow and stand further in; of a block none less than its first."""
        least = depth + 1
        while self.place < len(self.lines):
            line = self.lines[self.place]
            if line.strip() and len(line) - len(line.lstrip(" ")) <= depth:
                return
            if not line.strip() and not blank:
                return
            if blank and line.strip():
                inset = len(line) - len(line.lstrip(" "))
                if inset < least:
                    raise self.wrong("the text below | or > begins further left than its first line")
                least = inset if least == depth + 1 else least
            self.place += 1
            yield line.strip()


def mapping(lines: Lines, depth: int) -> Args:
    fields: Args = {}
    while (line := lines.next()) is not None:
        inset = len(line) - len(line.lstrip(" "))
        if inset < depth:
            break
        match = KEY.fullmatch(line.rstrip(" \r"))
        if "\t" in line[: inset + 1]:
            raise lines.wrong("a tab at the start; use spaces")
        if inset > depth or not match:
            raise lines.wrong(f"{line.strip()[:40]!r} is not `key: value`")
        key = match[2].strip("'\"")
        if key in fields:
            raise lines.wrong(f"{key} stands here twice")
        lines.place += 1
        fields[key] = value(lines, (match[3] or "").strip(" "), depth)
    return fields


def value(lines: Lines, text: str, depth: int) -> object:
    if not text or text.startswith("#"):
        return below(lines, depth)
    if text[0] in "|>":
        if not re.fullmatch(r"[|>][+-]?\d?(\s+#.*)?", text):
            raise lines.wrong("after | or > the text begins on the next line")
        return ("\n" if text[0] == "|" else " ").join(lines.deeper(depth, blank=True)).strip()
    if text[0] in "[]{}&*!%@`," or text in "-?" or text.startswith(("- ", "? ")):
        lines.place -= 1
        raise lines.wrong(f"a value may not begin with {text[0]}; put it in quotes")
    text = " ".join([text, *lines.deeper(depth)])
    if text[0] in "'\"":
        return unquoted(lines, text)
    text = re.split(r"\s+#", text)[0]
    if "\t" in text:
        lines.place -= 1
        raise lines.wrong("a tab in a value needs quotes around the value")
    if re.search(r":(\s|$)", text):
        lines.place -= 1
        raise lines.wrong('": " in a value needs quotes around the value')
    return text


def unquoted(lines: Lines, text: str) -> str:
    whole = re.fullmatch(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*(#.*)?""", text)
    if not whole:
        lines.place -= 1
        raise lines.wrong("a quote is not closed, or something follows it")
    inner = whole[1][1:-1]
    return inner.replace("''", "'") if text[0] == "'" else re.sub(r'\\(["\\/])', r"\1", inner)


def below(lines: Lines, depth: int) -> object:
    """A map or a list further in; nothing is empty text."""
    line = lines.next()
    inset = len(line) - len(line.lstrip(" ")) if line is not None else 0
    if line is None or (inset <= depth and not line.lstrip().startswith("- ")):
        return ""
    if not line.lstrip().startswith("- "):
        return mapping(lines, inset)
    found: list[str] = []
    while (line := lines.next()) is not None and line.startswith(f"{' ' * inset}- "):
        lines.place += 1
        found.append(str(value(lines, line.strip()[2:].strip(), inset)))
    return found
