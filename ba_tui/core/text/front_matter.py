"""Front matter of Markdown files that others wrote: YAML where it is, and where it is not, its fields all the same.

Pure. Which fields there are, and what they mean, is the business of whoever reads such files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, cast

from ba_tui.core.text.patterns import regex

MARK = "---"
NESTED = 1_000
"""Brackets, or dashes in a row: far more of them in each other end the process within the reader of YAML."""
_DEEP = regex(rf"(?:[-?][ \t]+){{{NESTED}}}")
_BREAKS = dict.fromkeys(map(ord, "\x85\u2028\u2029"), " ")
"""Spaces to whoever pasted them, but line ends to the reader of YAML."""
_FIELD = regex(r"([A-Za-z][\w-]*):[ \t]+(\S.*)")
_GOES_ON = regex(r"\s|$|(?:context|user|assistant|human)[ \t]*:|(?![\w-]+[ \t]*:(?:\s|$)|#|-(?![ \t]))", re.IGNORECASE)
"""A line that belongs to the field above: it is indented, it is no field, or it is what somebody says in an example."""
_HEADING = regex(r"#{1,6}[ \t]+(.+?)[ \t#]*$")


def divided(text: str) -> tuple[str | None, str, int]:
    """The front matter (None where there is none, or it is not closed), the rest, and the line in which that begins."""
    lines = text.split("\n")
    start = next((index for index, line in enumerate(lines) if line.strip()), len(lines))
    if start == len(lines) or lines[start].rstrip() != MARK:
        return None, text, 1
    end = next((index for index in range(start + 1, len(lines)) if lines[index].rstrip() == MARK), None)
    if end is None:
        return None, text, start + 1
    return "\n" * start + "\n".join(lines[start + 1 : end]), "\n".join(lines[end + 1 :]), end + 2


def read_fields(matter: str, certain: Collection[str]) -> tuple[dict[str, Any], str]:
    """The fields of front matter, each scalar as the text that it is, and what is wrong with it; empty when it is YAML.
    The fields in ``certain`` must be YAML: they are not words.

    Raises:
        ValueError: it can't be understood; the message names the line of the file where it can.
    """
    try:
        return _mapping(matter), ""
    except ValueError as error:
        try:
            return _mapping(_mended(matter, certain)), f"{error}; it was read as plain text"
        except ValueError:
            raise error from None


def opening(body: str) -> tuple[str, str]:
    """The first heading, and the first paragraph that is neither heading, list nor code."""
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
    """Raises ValueError, naming the line of the file."""
    import yaml  # noqa: PLC0415 - not before the first paint

    if max(map(matter.count, "[{")) > NESTED or _DEEP.search(matter):
        raise ValueError("the front matter is nested too deeply")
    try:
        # Every scalar as the text that it is: "1.0" is a version, and "no" a word.
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
    """With the values quoted that are no YAML as they stand, such as a description with a colon in it. Other assistants
    take a line of a field as it is."""
    lines = matter.split("\n")
    mended: list[str] = []
    while lines:
        line = lines.pop(0)
        found = _FIELD.fullmatch(line)
        if not found or found[1] in certain:
            # A bare * is a sign of YAML; people mean the word.
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
            # The lines are counted on, so that what is wrong further down is named by its own.
            mended += [f"{found[1]}: {json.dumps(' '.join(value), ensure_ascii=False)}", *("" for _ in more)]
    return "\n".join(mended)
