"""Front matter of Markdown files that were written for any assistant."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field

from ba_tui.core.errors import UsageError
from ba_tui.core.text.patterns import regex

_MARK = "---"
_FIELD = regex(r"([A-Za-z][\w-]*)[ \t]*:(?:[ \t]+(.*))?$")
_ITEM = regex(r"[ \t]*-[ \t]+(.*)$")


@dataclass(slots=True)
class _Lines:
    """Front matter, line by line. Not YAML: files for other programs hold ``argument-hint: [a] [b]`` and bare colons,
    which no parser of YAML takes."""

    longer: Collection[str]
    fields: dict[str, str] = field(default_factory=dict[str, str])
    key: str = ""

    def take(self, line: str, number: int) -> None:
        if not line.strip() or line.lstrip().startswith("#"):
            return
        if found := _FIELD.match(line):
            self.key = found[1].lower()
            value = (found[2] or "").strip()
            self.fields[self.key] = "" if re.fullmatch(r"[|>][+-]?", value) else _plain(value)
        elif (item := _ITEM.match(line)) and self.key:
            self._more(_plain(item[1].strip()))
        elif line[0] in " \t" and self.key:
            self._more(line.strip())
        else:
            raise UsageError(f"{number}: {line.strip()[:40]!r} is not a field of the form name: value")

    def _more(self, text: str) -> None:
        if self.key in self.longer:
            self.fields[self.key] = f"{self.fields[self.key]} {text}".strip()


def divided(text: str, longer: Collection[str]) -> tuple[dict[str, str], str]:
    """The fields of the front matter by their names in lower case, and the rest of ``text``. Values of the fields in
    ``longer`` may go on over several lines, or be lists, which are joined by spaces.

    Raises:
        UsageError: a line of it can't be read; the message begins with its number.
    """
    lines = text.split("\n")
    if lines[0].rstrip() != _MARK:
        return {}, text
    front = _Lines(longer)
    for number, line in enumerate(lines[1:], 2):
        if line.rstrip() == _MARK:
            return front.fields, "\n".join(lines[number:])
        front.take(line, number)
    raise UsageError("1: the front matter is not closed with a line ---")


def _plain(value: str) -> str:
    """A value without its quotes, if the whole of it stands in some."""
    if len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return str(json.loads(value))
        except ValueError:
            return value
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    return value
