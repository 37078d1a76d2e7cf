"""Reads and validates the SKILL.md of a skill. ``read_head`` is lenient: it uses what it can and warns. ``check``
applies the rules of the public format strictly: names, lengths, fields, YAML."""

from __future__ import annotations

import codecs
import contextlib
import os
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, cast

from ba_tui.core.text.front_matter import MARK, divided, opening, read_fields
from ba_tui.core.text.wording import clipped, one_word
from ba_tui.core.values import frozen
from ba_tui.resources import read_regular
from ba_tui.settings.tool_names import FIELDS as TOOLS
from ba_tui.settings.tool_names import tools_in

OURS = ("model", "disable-model-invocation", "user-invocable", "argument-hint")
"""Supported fields of other assistants, besides those of the format."""
FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
MAX_DESCRIPTION = 1_024
MAX_NAME = 64
_SWITCHES = ("name", "model", "disable-model-invocation", "user-invocable", "metadata")
"""Fields that must be valid YAML: their values are no prose."""


@frozen
class Head:
    """The front matter. ``trouble``: why the skill can't be used, with the line where known; the other fields are
    then a guess."""

    name: str = ""
    description: str = ""
    tools: tuple[str, ...] = ()
    model: str = ""
    hidden: bool = False
    """Whether only the user may start it."""
    for_models: bool = False
    """Whether only models may start it."""
    exclusive: bool = False
    hint: str = ""
    """A hint on its arguments, for the user."""
    trouble: str = ""
    warnings: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])


def decoded(raw: bytes, *, whole: bool) -> str:
    """Decode a file, without byte order mark and with ``\\n`` line ends. If it is not ``whole``, a character that is
    cut at the end is dropped.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
    """
    text = codecs.getincrementaldecoder("utf-8-sig")().decode(raw, whole)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_head(text: str, folder: str) -> Head:
    """Read the front matter of ``text``, the file or its beginning. A skill without a name is named like its
    ``folder``."""
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
    """Return ``name`` as one word that is valid after @ and / and in a path."""
    return one_word(name, MAX_NAME) or "skill"


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _yes(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() in {"true", "yes", "on", "1"}


def _no(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() in {"false", "no", "off", "0"}


def _short(text: str) -> str:
    return repr(clipped(text, 60))


FILE = "skill.md"
NAMES = ("SKILL.md", FILE)
MAX_BYTES = 5_000_000
MAX_COMPATIBILITY = 500
BODY_TOKENS = 5_000
CHARACTERS_PER_TOKEN = 4
_BREAKS = str.maketrans("\x85\u2028\u2029", "\ue085\ue028\ue029")
"""Line ends in YAML 1.1, which the parser reads, that are ordinary characters in YAML 1.2, which the format uses."""
_BREAKS_AGAIN = {stand_in: char for char, stand_in in _BREAKS.items()}


@frozen
class SkillReport:
    """The result of a check. ``errors`` violate the format; ``warnings`` do not."""

    path: Path
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        return not self.errors


class UnreadableSkill(ValueError):
    """The front matter violates the strict rules; the message names the line where known."""


def check(path: Path) -> SkillReport:
    """Check a skill's folder, or its SKILL.md. Reads one file; runs nothing and never raises."""
    folder = Path(os.path.abspath(path))  # noqa: PTH100 - its name counts as it is written, not where a link leads
    try:
        if folder.is_file() and folder.name.lower() == FILE:
            folder = folder.parent
        if not os.path.lexists(folder) or not folder.exists():
            return SkillReport(folder, (f"There is nothing at {folder}",))
        if not folder.is_dir():
            return SkillReport(folder, (f"{folder} is not a folder",))
    except (OSError, ValueError) as error:
        return SkillReport(folder, (f"The folder can't be read: {error}",))
    file = skill_file(folder)
    if file is None:
        return SkillReport(folder, ("There is no file SKILL.md",))
    try:
        raw = read_regular(file, MAX_BYTES + 1)
        # A byte order mark is kept: by the rules a file begins with ---.
        text = raw.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
        fields, body = strict_fields(text)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        return SkillReport(folder, (f"{file.name} can't be read: {why or error}",))
    except UnreadableSkill as error:
        return SkillReport(folder, (str(error),))
    return SkillReport(folder, tuple(_errors(fields, folder)), tuple(_warnings(body, len(raw))))


def skill_file(folder: Path) -> Path | None:
    """Return the SKILL.md of ``folder``, in upper or lower case; None if there is none."""
    return next((folder / name for name in file_names(folder) if os.path.exists(folder / name)), None)  # noqa: PTH110 - must not raise


def file_names(folder: Path) -> Iterator[str]:
    """Yield the names that the SKILL.md of ``folder`` may have, the most likely first. Reads the disk for the last."""
    yield from NAMES
    with contextlib.suppress(OSError, ValueError):
        yield from sorted(
            name for path in folder.iterdir() if (name := path.name).lower() == FILE and name not in NAMES
        )


def strict_fields(text: str) -> tuple[dict[str, Any], str]:
    """Return the fields of the front matter and the body. Raises UnreadableSkill."""
    if not text.startswith(MARK):
        raise UnreadableSkill("SKILL.md must begin with a line --- that opens the front matter")
    parts = text.split(MARK, 2)
    if len(parts) < 3:
        raise UnreadableSkill("The front matter is not closed with a line ---")
    return _strict_mapping(parts[1]), parts[2].strip()


def _errors(fields: Mapping[str, Any], folder: Path) -> list[str]:
    errors: list[str] = []
    if unknown := sorted(key for key in fields if key not in FIELDS):
        errors.append(f"Unknown fields: {', '.join(unknown)}; the format has only {', '.join(FIELDS)}")
    errors += _name_errors(fields["name"], folder) if "name" in fields else ["The field name is missing"]
    if "description" not in fields:
        errors.append("The field description is missing")
    elif not _said(fields["description"]):
        errors.append("description must be a text that is not empty")
    elif (size := len(fields["description"])) > MAX_DESCRIPTION:
        errors.append(f"description has {size:,} characters; at most {MAX_DESCRIPTION:,} are allowed")
    compatibility: Any = fields.get("compatibility", "")
    if not isinstance(compatibility, str):
        errors.append("compatibility must be a text")
    elif len(compatibility) > MAX_COMPATIBILITY:
        errors.append(f"compatibility has {len(compatibility)} characters; at most {MAX_COMPATIBILITY} are allowed")
    return errors


def _name_errors(value: Any, folder: Path) -> list[str]:
    if not _said(value):
        return ["name must be a text that is not empty"]
    name = unicodedata.normalize("NFKC", value.strip())
    errors: list[str] = []
    if len(name) > MAX_NAME:
        errors.append(f"name has {len(name)} characters; at most {MAX_NAME} are allowed")
    if name != name.lower():
        errors.append(f"name {name!r} must be in small letters")
    if name.startswith("-") or name.endswith("-"):
        errors.append(f"name {name!r} must neither begin nor end with a hyphen")
    if "--" in name:
        errors.append(f"name {name!r} must not have two hyphens in a row")
    if not all(char.isalnum() or char == "-" for char in name):
        errors.append(f"name {name!r} may hold letters, digits and hyphens only")
    if unicodedata.normalize("NFKC", folder.name) != name:
        errors.append(f"The folder is called {folder.name!r} and the skill {name!r}; both must be the same")
    return errors


def _warnings(body: str, size: int) -> list[str]:
    warnings: list[str] = []
    if not body:
        warnings.append("There are no instructions after the front matter")
    if (tokens := len(body) // CHARACTERS_PER_TOKEN) > BODY_TOKENS:
        warnings.append(f"The instructions take about {tokens:,} tokens; keep them below {BODY_TOKENS:,}")
    if size > MAX_BYTES:
        warnings.append(f"SKILL.md is larger than {MAX_BYTES // 1_000_000} MB; only its beginning was looked at")
    return warnings


def _said(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _strict_mapping(matter: str) -> dict[str, Any]:
    """Parse YAML as the format defines it: every scalar is text; no JSON style, anchors, tags or repeated keys."""
    import yaml  # noqa: PLC0415 - not before the first paint

    matter = matter.translate(_BREAKS)
    try:
        loader: Any = yaml.SafeLoader(matter)
        while loader.check_token():
            _refuse(loader.get_token(), yaml)
        node: Any = yaml.SafeLoader(matter).get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise UnreadableSkill("The front matter must be fields as name: value")
        return cast("dict[str, Any]", _plain(node, yaml))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f" (line {mark.line + 1})" if mark else ""
        raise UnreadableSkill(f"The front matter is not valid YAML{place}: {error.problem or error.context}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise UnreadableSkill(f"The front matter is not valid YAML: {str(error).splitlines()[0][:200]}") from error


def _refuse(token: Any, yaml: Any) -> None:
    kinds = {
        yaml.FlowMappingStartToken: "lists and fields in JSON style, as in { or [, are not allowed; quote the text",
        yaml.FlowSequenceStartToken: "lists and fields in JSON style, as in { or [, are not allowed; quote the text",
        yaml.AnchorToken: "anchors (&) are not allowed; quote the text",
        yaml.TagToken: "tags (!) are not allowed; quote the text",
    }
    if why := kinds.get(type(token)):
        raise UnreadableSkill(f"The front matter breaks the format (line {token.start_mark.line + 1}): {why}")


def _plain(node: Any, yaml: Any) -> Any:
    if isinstance(node, yaml.ScalarNode):
        text = str(node.value).translate(_BREAKS_AGAIN)
        # These two have a special meaning in YAML, so unquoted they are no text.
        return None if text in {"<<", "="} and node.style is None else text
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, yaml) for item in node.value]
    found: dict[str, Any] = {}
    columns: set[int] = set()
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise UnreadableSkill(f"The front matter breaks the format (line {line}): a field's name must be a word")
        name = str(key.value).translate(_BREAKS_AGAIN)
        if name == "<<" and key.style is None:
            # The format ignores merged fields, but they must be valid.
            for merged in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if not isinstance(merged, yaml.MappingNode):
                    raise UnreadableSkill(
                        f"The front matter is not valid YAML (line {line}): << takes in fields, not a text"
                    )
                _plain(merged, yaml)
            continue
        if name in found:
            raise UnreadableSkill(f"The field {name!r} is given twice (line {line})")
        if isinstance(value, yaml.MappingNode):
            columns.add(value.start_mark.column)
        found[name] = _plain(value, yaml)
    if len(columns) > 1:
        raise UnreadableSkill(f"Fields within fields are indented unevenly (line {node.start_mark.line + 1})")
    return found
