"""Reads the front matter of a SKILL.md leniently: what can be used is used, and what is odd is a warning.

How strict the format is about it stands in ``validator``; which folders are looked at, in ``catalog``.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import field
from typing import Any, cast

from ba_tui.core.text.front_matter import MARK, divided, opening, read_fields
from ba_tui.core.text.wording import clipped, one_word
from ba_tui.core.values import frozen
from ba_tui.settings.allowed_tools import FIELDS as TOOLS
from ba_tui.settings.allowed_tools import tools_in

OURS = ("model", "disable-model-invocation", "user-invocable", "argument-hint")
"""Fields of other assistants that are understood here, beside those of the format."""
FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
MAX_DESCRIPTION = 1_024
MAX_NAME = 64
_SWITCHES = ("name", "model", "disable-model-invocation", "user-invocable", "metadata")
"""What they say must be certain: it is not words."""


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


def read_head(text: str, folder: str) -> Head:
    """``text`` is the file, or its beginning. A skill without a name of its own is called as its ``folder``."""
    matter, body, _ = divided(text)
    heading, paragraph = opening(body)
    if matter is None:
        if text.lstrip().startswith(f"{MARK}\n"):
            return Head(folder, trouble="line 1: the front matter is not closed with a line ---")
        name = heading or folder
        trouble = "" if paragraph else "it has neither front matter nor a paragraph that says what it is for"
        return Head(name, paragraph, trouble=trouble, warnings=("there is no front matter",))
    try:
        fields, mended = read_fields(matter, _SWITCHES)
    except ValueError as error:
        return Head(folder, paragraph, trouble=str(error))
    return _from(fields, folder, (heading, paragraph), [mended] if mended else [])


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
    return one_word(name, MAX_NAME) or "skill"


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _yes(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() in {"true", "yes", "on", "1"}


def _no(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() in {"false", "no", "off", "0"}


def _short(text: str) -> str:
    return repr(clipped(text, 60))
