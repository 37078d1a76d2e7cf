"""Reads the front matter of a SKILL.md leniently: what can be used is used, and what is odd is a warning.

How strict the format is about it stands in ``validator``; which folders are looked at, in ``catalog``.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import clipped
from ba_tui.core.values import frozen
from ba_tui.settings.allowed_tools import FIELDS as TOOLS
from ba_tui.settings.allowed_tools import tools_in

MARK = "---"
OURS = ("model", "disable-model-invocation", "user-invocable", "argument-hint")
"""Fields of other assistants that are understood here, beside those of the format."""
FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
MAX_DESCRIPTION = 1_024
MAX_NAME = 64
NESTED = 1_000
"""Brackets, or dashes in a row: far more of them in each other end the process within the reader of YAML."""
_DEEP = regex(rf"(?:[-?][ \t]+){{{NESTED}}}")
_BREAKS = dict.fromkeys(map(ord, "\x85\u2028\u2029"), " ")
"""Spaces to whoever pasted them, but line ends to the reader of YAML."""
_SWITCHES = ("name", "model", "disable-model-invocation", "user-invocable", "metadata")
"""What they say must be certain: it is not words."""
_FIELD = regex(r"([A-Za-z][\w-]*):[ \t]+(\S.*)")
_HEADING = regex(r"#{1,6}[ \t]+(.+?)[ \t#]*$")


@frozen
class Head:
    """``trouble`` is why the skill can't be used, with the line where there is one; then the rest is a best guess."""

    name: str = ""
    description: str = ""
    tools: tuple[str, ...] = ()
    model: str = ""
    hidden: bool = False
    """Only a person may start it."""
    for_models: bool = False
    """Only models may start it."""
    exclusive: bool = False
    hint: str = ""
    """What arguments it takes, for people."""
    trouble: str = ""
    warnings: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])


def decoded(raw: bytes, *, whole: bool) -> str:
    """The text of a file, without a byte order mark and with plain line ends. When it is not ``whole``, a character
    that is cut at its end is left out.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
    """
    text = codecs.getincrementaldecoder("utf-8-sig")().decode(raw, whole)
    return text.replace("\r\n", "\n").replace("\r", "\n")


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


def read_head(text: str, folder: str) -> Head:
    """``text`` is the file, or its beginning. A skill without a name of its own is called as its ``folder``."""
    matter, body, _ = divided(text)
    heading, paragraph = _opening(body)
    if matter is None:
        if text.lstrip().startswith(f"{MARK}\n"):
            return Head(folder, trouble="line 1: the front matter is not closed with a line ---")
        name = heading or folder
        trouble = "" if paragraph else "it has neither front matter nor a paragraph that says what it is for"
        return Head(name, paragraph, trouble=trouble, warnings=("there is no front matter",))
    warnings: list[str] = []
    try:
        fields = _mapping(matter)
    except ValueError as error:
        try:
            fields = _mapping(_mended(matter))
        except ValueError:
            return Head(folder, paragraph, trouble=str(error))
        warnings.append(f"{error}; it was read as plain text")
    return _from(fields, folder, (heading, paragraph), warnings)


def _from(fields: Mapping[str, Any], folder: str, opening: tuple[str, str], warnings: list[str]) -> Head:
    heading, paragraph = opening
    name, description = _text(fields.get("name")), _text(fields.get("description"))
    if not name:
        warnings.append("name is missing; the folder's name is used")
    elif name != folder:
        warnings.append(f"name is {_short(name)} and the folder's is {_short(folder)}; they should be the same")
    if len(name) > MAX_NAME:
        warnings.append(f"name has {len(name)} characters; at most {MAX_NAME} are allowed")
    if not description:
        warnings.append("description is missing; the first paragraph is used")
    elif len(description) > MAX_DESCRIPTION:
        warnings.append(f"description has {len(description):,} characters; at most {MAX_DESCRIPTION:,} are allowed")
    unknown = [key for key in fields if key not in (*FIELDS, *OURS) and key.lower() not in TOOLS]
    if unknown:
        warnings.append(f"unknown fields are ignored: {', '.join(map(_short, sorted(unknown)))}")
    extra: Any = fields.get("metadata")
    metadata = cast("dict[str, Any]", extra) if isinstance(extra, dict) else {}
    description = description or paragraph
    return Head(
        name or folder,
        " ".join(description.split()),
        tools_in(fields),
        _text(fields.get("model")),
        _yes(fields.get("disable-model-invocation")),
        _no(fields.get("user-invocable")),
        _yes(metadata.get("only-allowed-tools")),
        _text(fields.get("argument-hint")),
        "" if description else f"nothing says what {_short(heading or name or folder)} is for: description is missing",
        tuple(warnings),
        fields,
    )


def id_of(name: str) -> str:
    """``name`` as one word that can stand after @ and / and in a path."""
    return re.sub(r"[^\w-]+", "-", name.strip().lower()).strip("-")[:MAX_NAME] or "skill"


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


def _mended(matter: str) -> str:
    """With the values quoted that are no YAML as they stand, such as a description with a colon in it. Other assistants
    take a line of a field as it is."""
    lines = matter.split("\n")
    mended: list[str] = []
    while lines:
        line = lines.pop(0)
        found = _FIELD.fullmatch(line)
        if not found or found[1] in _SWITCHES:
            mended.append(line)
            continue
        more: list[str] = []
        while lines and lines[0].startswith((" ", "\t", "- ")):
            more.append(lines.pop(0))
        try:
            _mapping("\n".join([line, *more]))
            mended += [line, *more]
        except ValueError:
            value = " ".join([found[2], *more]).split()
            # The lines are counted on, so that what is wrong further down is named by its own.
            mended += [f"{found[1]}: {json.dumps(' '.join(value), ensure_ascii=False)}", *("" for _ in more)]
    return "\n".join(mended)


def _opening(body: str) -> tuple[str, str]:
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


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _yes(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() in {"true", "yes", "on", "1"}


def _no(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() in {"false", "no", "off", "0"}


def _short(text: str) -> str:
    return repr(clipped(text, 60))
