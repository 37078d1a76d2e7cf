"""Read the front matter of Markdown files: as YAML, mended if it is not valid, or line by line. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, cast

from ba_tui.core.text.patterns import regex

MARK = "---"
NESTED = 1_000
"""Maximum nesting of brackets or dashes: far deeper input crashes the process inside the YAML parser."""
_DEEP = regex(rf"(?:[-?][ \t]+){{{NESTED}}}")
_BREAKS = dict.fromkeys(map(ord, "\x85\u2028\u2029"), " ")
"""Characters that authors meant as spaces but YAML reads as line ends."""
_FIELD = regex(r"([A-Za-z][\w-]*):[ \t]+(\S.*)")
_GOES_ON = regex(r"\s|$|(?:context|user|assistant|human)[ \t]*:|(?![\w-]+[ \t]*:(?:\s|$)|#|-(?![ \t]))", re.IGNORECASE)
"""A continuation of the field above: an indented line, a line that is no field, or a speaker's line in an example."""
_LINE = regex(r"([A-Za-z][\w-]*)[ \t]*:(?:[ \t]+(.*))?$")
_ITEM = regex(r"[ \t]*-[ \t]+(.*)$")
_HEADING = regex(r"#{1,6}[ \t]+(.+?)[ \t#]*$")


def divided(text: str) -> tuple[str | None, str, int]:
    """Return the front matter, the rest of the text, and the line number at which the rest begins. The front matter is
    None if it is missing or not closed."""
    lines = text.split("\n")
    start = next((index for index, line in enumerate(lines) if line.strip()), len(lines))
    if start == len(lines) or lines[start].rstrip() != MARK:
        return None, text, 1
    end = next((index for index in range(start + 1, len(lines)) if lines[index].rstrip() == MARK), None)
    if end is None:
        return None, text, start + 1
    return "\n" * start + "\n".join(lines[start + 1 : end]), "\n".join(lines[end + 1 :]), end + 2


def read_fields(matter: str, certain: Collection[str]) -> tuple[dict[str, Any], str]:
    """Parse front matter; return its fields with every scalar as text, and a warning, empty for valid YAML.

    Fields named in ``certain`` must be YAML: they are never read as plain text.

    Raises:
        ValueError: the front matter cannot be parsed; the message names the line of the file where possible.
    """
    try:
        return _mapping(matter), ""
    except ValueError as error:
        try:
            return _mapping(_mended(matter, certain)), f"{error}; it was read as plain text"
        except ValueError:
            raise error from None


def read_plain_fields(text: str, longer: Collection[str]) -> tuple[dict[str, str], str]:
    """Return the fields of the front matter by their names in lower case, and the rest of ``text``. Front matter that
    other programs read line by line is often no valid YAML: ``argument-hint: [a] [b]``.

    Values of the fields in ``longer`` may have several lines, or be lists, which are joined by spaces.

    Raises:
        ValueError: a line can't be parsed; the message begins with its number.
    """
    if text.split("\n", 1)[0].rstrip() != MARK:
        return {}, text
    matter, body, _ = divided(text)
    if matter is None:
        raise ValueError(f"1: the front matter is not closed with a line {MARK}")
    plain = _PlainFields(longer)
    for number, line in enumerate(matter.split("\n"), 2):
        plain.take(line, number)
    return plain.fields, body


@dataclass(slots=True)
class _PlainFields:
    longer: Collection[str]
    fields: dict[str, str] = field(default_factory=dict[str, str])
    key: str = ""

    def take(self, line: str, number: int) -> None:
        if not line.strip() or line.lstrip().startswith("#"):
            return
        if found := _LINE.match(line):
            self.key = found[1].lower()
            value = (found[2] or "").strip()
            self.fields[self.key] = "" if re.fullmatch(r"[|>][+-]?", value) else _unquoted(value)
        elif (item := _ITEM.match(line)) and self.key:
            self._more(_unquoted(item[1].strip()))
        elif line[0] in " \t" and self.key:
            self._more(line.strip())
        else:
            raise ValueError(f"{number}: {line.strip()[:40]!r} is not a field of the form name: value")

    def _more(self, text: str) -> None:
        if self.key in self.longer:
            self.fields[self.key] = f"{self.fields[self.key]} {text}".strip()


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return str(json.loads(value))
        except ValueError:
            return value
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    return value


def opening(body: str) -> tuple[str, str]:
    """Return the first heading, and the first paragraph outside headings, lists and code."""
    heading, words, fenced = "", list[str](), False
    for line in body[:20_000].split("\n"):
        plain = line.strip()
        if plain.startswith(("```", "~~~")):
            fenced = not fenced
        found = _HEADING.match(plain)
        if found and not heading and not fenced:
            heading = found.group(1).strip()
        if fenced or not plain or found or plain.startswith(("```", "~~~", "<!--", "- ", "* ", "| ")):
            if words:
                break
            continue
        words.append(plain)
    return heading, " ".join(words)


def _mapping(matter: str) -> dict[str, Any]:
    """Parse YAML. Raises ValueError, which names the line of the file."""
    import yaml  # noqa: PLC0415 - not before the first paint

    if max(map(matter.count, "[{")) > NESTED or _DEEP.search(matter):
        raise ValueError("the front matter is nested too deeply")
    try:
        # Keep every scalar as text: "1.0" is a version, and "no" a word.
        loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
        value: Any = yaml.load(matter.translate(_BREAKS), loader)  # noqa: S506 - makes texts, lists and mappings only
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 2}: " if mark else ""
        raise ValueError(f"{line}the front matter is not valid YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ValueError(f"the front matter is not valid YAML: {str(error).splitlines()[0][:200]}") from error
    if value in (None, ""):
        return {}
    if not isinstance(value, dict):
        raise ValueError("line 2: the front matter must be fields as name: value")
    return {str(key): item for key, item in cast("dict[Any, Any]", value).items() if isinstance(key, str)}


def _mended(matter: str, certain: Collection[str]) -> str:
    """Return the front matter with values quoted that are not valid YAML, such as descriptions with a colon. Other
    assistants read the rest of the line as the value, so files rely on it."""
    lines = matter.split("\n")
    mended: list[str] = []
    while lines:
        line = lines.pop(0)
        found = _FIELD.fullmatch(line)
        if not found or found[1] in certain:
            # YAML reads a bare * as an alias; authors mean the character.
            starred = found is not None and found[2].rstrip() == "*"
            mended.append(line.replace("*", '"*"') if starred else line)
            continue
        more: list[str] = []
        while lines and _GOES_ON.match(lines[0]):
            more.append(lines.pop(0))
        try:
            _mapping("\n".join([line, *more]))
            mended += [line, *more]
        except ValueError:
            value = " ".join([found[2], *more]).split()
            # Keep the number of lines, so that errors below name the right line.
            mended += [f"{found[1]}: {json.dumps(' '.join(value), ensure_ascii=False)}", *("" for _ in more)]
    return "\n".join(mended)
