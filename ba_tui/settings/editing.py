"""Change one key in the user's config.yaml, also from a form; the rest of the file, with its comments, is preserved.

The new text is parsed before it is saved, and a broken file is never overwritten.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import yaml

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.settings import SettingLine
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.resources import UserFolders, exclusive, read_regular, save_whole
from ba_tui.settings.checks import Layer, check
from ba_tui.settings.document import parse_document, printable, read_document
from ba_tui.settings.layers import LoadedSettings, as_data, keep_asking, leaves
from ba_tui.settings.mcp_servers import is_reference, plain_address
from ba_tui.settings.model import Settings
from ba_tui.settings.plain import made


def set_value(places: UserFolders, key: str, text: str, verify: Callable[[Any], None] | None = None) -> Path:
    """Set ``key`` (dotted) to ``text`` in the user's config.yaml and return the file's path. ``verify`` may reject a
    valid value by raising UsageError.

    Raises:
        UsageError: the key is unknown, the value is invalid, or the file is broken.
        StorageError: the file can't be written.
    """

    def chosen(_: Any) -> Any:
        value = _checked(key, text)
        if verify:
            verify(value)
        return value

    return _write(places, key.split("."), chosen)


def unset_value(places: UserFolders, key: str) -> bool:
    """Remove ``key``, and groups that become empty, from the user's config.yaml; return False when it is not there.

    Raises:
        UsageError: the file is broken. StorageError: it can't be written.
    """
    path, parts = places.settings, key.split(".")
    with exclusive(path.parent):
        before = _read(path)
        document = parse_document(path, before)
        if document.broken:
            raise UsageError(f"{document.problems[0]}.", "Correct the file first: ba config edit.")
        if not _holds(document.data, parts):
            return False
        while len(parts) > 1 and len(_at(document.data, parts[:-1])) == 1:
            parts.pop()
        left = _without(document.data, parts)
        after = _taken_out(before, parts, left)
        read_back = parse_document(path, after)
        if read_back.broken or read_back.data != left:
            raise UsageError(
                f"{key} can't be taken out of {path} without breaking the file.", "Edit the file: ba config edit."
            )
        save_whole(path, after)
    return True


def put_value(places: UserFolders, key: str, value: Any) -> Path:
    """Set ``key`` to ``value``, which is data instead of text to parse. Raises as ``set_value``."""
    return _write(places, key.split("."), lambda _: _fitting(key, value))


def add_item(places: UserFolders, key: str, item: str | dict[str, Any]) -> Path:
    """Append ``item`` to the list ``key`` in the user's config.yaml unless present. Raises as ``set_value``."""
    return _write(places, key.split("."), lambda old: _items(old) if item in _items(old) else [*_items(old), item])


def remove_item(places: UserFolders, key: str, item: str | dict[str, Any]) -> bool:
    """Remove ``item`` from the list ``key``; return False when it is not there. Raises as ``set_value``."""
    found: list[bool] = []

    def without(old: Any) -> list[Any]:
        found.append(item in _items(old))
        return [each for each in _items(old) if each != item]

    document = read_document(places.settings)
    if document is None or not _items(_at(document.data, key.split("."))):
        return False
    _write(places, key.split("."), without)
    return found[0]


def _items(value: Any) -> list[Any]:
    return list(cast("list[Any]", value)) if isinstance(value, list) else []


def _at(data: Any, parts: list[str]) -> Any:
    for part in parts:
        data = cast("dict[str, Any]", data).get(part) if isinstance(data, dict) else None
    return data


def _write(places: UserFolders, parts: list[str], change: Callable[[Any], Any]) -> Path:
    """Set the key at ``parts`` to the value that ``change`` returns for the old one; return the file's path."""
    path = places.settings
    with exclusive(path.parent):
        before = _read(path)
        document = parse_document(path, before)
        if document.broken:
            raise UsageError(f"{document.problems[0]}.", "Correct the file first: ba config edit.")
        old = _at(document.data, parts)
        value = change(old)
        after = before if value == old else _with(before, parts, value)
        read_back = parse_document(path, after)
        if read_back.broken or read_back.data != _nested(document.data, parts, value):
            name = ".".join(parts)
            raise UsageError(
                f"{name} can't be set in {path} without breaking the file.", "Edit the file: ba config edit."
            )
        if after != before:
            save_whole(path, after)
    return path


def _read(path: Path) -> str:
    try:
        return read_regular(path, 2_000_000).decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text.", "Correct the file first: ba config edit.") from error
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror or error}.", "Check its permissions.") from error


def _checked(key: str, text: str) -> Any:
    """Convert ``text`` to a value of ``key``: unchanged if valid, else parsed as YAML, else as a list of one."""
    parts = key.split(".")
    candidates: list[Any] = [text]
    with suppress(yaml.YAMLError):
        candidates.append(yaml.safe_load(text))
    candidates.append([text])
    complaint = ""
    for candidate in candidates:
        layer = Layer(_nested({}, parts, candidate), lambda _: ("", 0), Path())
        check(layer)
        keep_asking(layer)
        if not layer.problems:
            found = leaves(as_data(made(Settings, layer.data)))
            if key in found:
                return found[key]
            complaint = complaint or "this is a group of settings; set one of them"
        else:
            complaint = complaint or layer.problems[0].text
    raise UsageError(f"{key}: {complaint}{'' if complaint.endswith('?') else '.'}", "See ba config schema.")


def _fitting(key: str, value: Any) -> Any:
    layer = Layer(_nested({}, key.split("."), value), lambda _: ("", 0), Path())
    check(layer)
    keep_asking(layer)
    if layer.problems:
        raise UsageError(f"{key}: {layer.problems[0].text}.", "See ba config schema.")
    return value


def _nested(data: dict[str, Any], parts: list[str], value: Any) -> dict[str, Any]:
    """Return a copy of ``data`` with ``value`` at ``parts``."""
    first, *rest = parts
    if not rest:
        return {**data, first: value}
    inner = data.get(first)
    return {**data, first: _nested(cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}, rest, value)}


def _holds(data: Any, parts: list[str]) -> bool:
    group = _at(data, parts[:-1])
    return isinstance(group, dict) and parts[-1] in group


def _without(data: dict[str, Any], parts: list[str]) -> dict[str, Any]:
    """Return a copy of ``data`` without the value at ``parts``."""
    first, *rest = parts
    if rest:
        return {**data, first: _without(data[first], rest)}
    return {name: value for name, value in data.items() if name != first}


def _taken_out(text: str, parts: list[str], left: dict[str, Any]) -> str:
    """Return ``text`` without the existing entry at ``parts``: its lines, or its part of a one-line group. ``left`` is
    the remaining data."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    for part in parts[:-1]:
        node = next(value for name, value in _pairs(cast("yaml.MappingNode", node)) if name.value == part)
    group = cast("yaml.MappingNode", node)
    name, value = next(pair for pair in _pairs(group) if pair[0].value == parts[-1])
    if group.flow_style:
        return _replaced(text, group, _flow([], _at(left, parts[:-1])))
    start = text.rfind("\n", 0, name.start_mark.index) + 1
    end = text.find("\n", _end(text, value))
    return text[:start] + (text[end + 1 :] if end >= 0 else "")


def _with(text: str, parts: list[str], value: Any) -> str:
    """Return ``text`` with ``value`` at ``parts``: in place of the old value, in its group, or at the end."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None:
        return _appended(text, _block(parts, value))
    node, depth = root, 0
    while isinstance(node, yaml.MappingNode) and depth < len(parts):
        child = next((item for name, item in _pairs(node) if name.value == parts[depth]), None)
        if child is None:
            return _into(text, node, parts[depth:], value)
        node, depth = child, depth + 1
    if depth == len(parts) and isinstance(node, yaml.SequenceNode) and isinstance(value, list) and not node.flow_style:
        return _relisted(text, node, cast("list[Any]", value))
    return _replaced(text, node, _flow(parts[depth:], value))


def _pairs(node: yaml.MappingNode) -> list[tuple[yaml.Node, yaml.Node]]:
    return cast("list[tuple[yaml.Node, yaml.Node]]", node.value)


def _replaced(text: str, node: yaml.Node, value: str) -> str:
    start, end = node.start_mark.index, max(node.start_mark.index, _end(text, node))
    space = " " if text[start - 1 : start] == ":" else ""
    return text[:start] + space + value + text[end:]


def _relisted(text: str, node: yaml.SequenceNode, value: list[Any]) -> str:
    """Return ``text`` with one line of a list added or removed, which preserves the comments of other lines."""
    items = cast("list[yaml.Node]", node.value)
    old = [_said(item) for item in items]
    if value[:-1] == old:
        end = _line_end(text, _end(text, items[-1]))
        return f"{text[:end]}{_newline(text)}{' ' * node.start_mark.column}- {_flow([], value[-1])}{text[end:]}"
    gone = [index for index, item in enumerate(old) if item not in value]
    if len(gone) == 1 and value:
        item = items[gone[0]]
        start = text.rfind("\n", 0, item.start_mark.index) + 1
        end = _line_end(text, _end(text, item))
        lead, rest = text[:start], text[end:]
        return lead + rest.removeprefix("\r").removeprefix("\n")
    return _replaced(text, node, _flow([], value))


def _said(node: yaml.Node) -> Any:
    """Return a scalar as written, whatever type YAML would give it; other nodes as data."""
    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    construct = cast("Callable[..., Any]", yaml.SafeLoader("").construct_object)
    return construct(node, deep=True)


def _line_end(text: str, index: int) -> int:
    end = text.find("\n", index)
    end = len(text) if end < 0 else end
    return end - 1 if text[end - 1 : end] == "\r" else end


def _end(text: str, node: yaml.Node) -> int:
    """Return the end of ``node``. YAML's end marks of block collections and scalars include the space after them."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = cast("list[yaml.Node | tuple[yaml.Node, yaml.Node]]", node.value)[-1]
        return _end(text, last[1] if isinstance(last, tuple) else last)
    return len(text[: node.end_mark.index].rstrip("\r\n"))


def _into(text: str, group: yaml.MappingNode, parts: list[str], value: Any) -> str:
    """Return ``text`` with a new first entry in ``group``, or a new last one when the group is the whole file."""
    start = group.start_mark.index
    if group.flow_style:
        entry = _flow(parts, value).removeprefix("{").removesuffix("}")
        return f"{text[: start + 1]}{entry}{', ' if group.value else ''}{text[start + 1 :]}"
    lines = _block(parts, value)
    if group.start_mark.column == 0:
        return _appended(text, lines)
    margin = _newline(text) + " " * group.start_mark.column
    return text[:start] + margin.join(lines) + margin + text[start:]


def _appended(text: str, lines: list[str]) -> str:
    newline = _newline(text)
    lead = text if not text or text.endswith(("\n", "\r")) else text + newline
    return lead + newline.join(lines) + newline


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _block(parts: list[str], value: Any) -> list[str]:
    """Return the lines of ``value`` at ``parts`` in block style."""
    groups = [f"{'  ' * depth}{_flow([], part)}:" for depth, part in enumerate(parts[:-1])]
    return [*groups, f"{'  ' * len(groups)}{_flow([], parts[-1])}: {_flow([], value)}"]


def _flow(parts: list[str], value: Any) -> str:
    """Return ``value`` at ``parts`` on one line."""
    for part in reversed(parts):
        value = {part: value}
    text = yaml.safe_dump(value, default_flow_style=True, width=10**9, allow_unicode=True, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")


_SECRET = regex(r"(?s)mcp\.servers\.[\w-]+\.(?:env\..+|headers\..+|oauth\.client_secret)")
_SERVER = regex(r"mcp\.servers\.[\w-]+\.url")
_PASSWORD = regex(r"(://[^\s/@:]*:)[^\s/@]*@")
HIDDEN = "…@"
"""Replaces the password in an address."""
NONE = "—"
ELSEWHERE = {"permissions": "/permissions", "providers": "/setup"}
"""Commands that change groups which the form does not."""
FILE = "ba config edit"


@frozen
class _Metadata:
    about: str
    choices: tuple[str, ...] = ()
    single: bool = False


@frozen
class SettingsOfFolder:
    """core.ports.settings.SettingsForm. ``load`` reads all files again; ``verify`` raises UsageError for a value of the
    right type without meaning."""

    places: UserFolders
    load: Callable[[], LoadedSettings]
    verify: Callable[[str, Any], None]

    def lines(self) -> Sequence[SettingLine]:
        """See core.ports.settings.SettingsForm."""
        loaded, known = self.load(), dict(_described(Settings))
        values = leaves(as_data(loaded.settings))
        return [_line(key, value, loaded.sources.get(key, "default"), known) for key, value in values.items()]

    def problems(self) -> Sequence[str]:
        """See core.ports.settings.SettingsForm."""
        return [printable(str(problem)) for problem in self.load().warnings]

    def set(self, key: str, text: str) -> str:
        """See core.ports.settings.SettingsForm."""
        if HIDDEN in text:
            raise UsageError(
                "The password in this address is hidden.", "Type the whole address, or use ba config edit."
            )
        file = set_value(self.places, key, text, lambda value: self.verify(key, value))
        source = self.load().sources.get(key, "")
        if source and str(file) not in source:
            return f"{key} is set in {file}, but has no effect here: {source} overrides it."
        return f"{key} is set in {file}, for the next start of ba."

    def reset(self, key: str) -> str:
        """See core.ports.settings.SettingsForm."""
        taken = unset_value(self.places, key)
        source = self.load().sources.get(key, "bundled")
        if source != "bundled":
            return f"{key} is {'no longer' if taken else 'not'} set in your file, but {source} sets it."
        return f"{key} has its default{' again, from the next start of ba' if taken else ' already'}."


def discreet(value: Any, key: str = "") -> Any:
    """Return ``value`` without passwords in addresses; hide it when the setting ``key`` may contain a key."""
    if _SECRET.fullmatch(key) and value and not is_reference(str(value)):
        return "(hidden)"
    if _SERVER.fullmatch(key) and value:
        return plain_address(str(value))
    return _PASSWORD.sub(rf"\1{HIDDEN}", value) if isinstance(value, str) else value


def value_text(value: Any) -> str:
    """Format a value for the user."""
    return NONE if value in (None, "", [], {}) else value if isinstance(value, str) else json.dumps(value)


def _line(key: str, value: Any, source: str, known: Mapping[str, _Metadata]) -> SettingLine:
    group = key.partition(".")[0]
    found = known.get(key) or known.get(group) or _Metadata("")
    single = found.single and group not in ELSEWHERE
    where = "" if single else ELSEWHERE.get(group, FILE)
    choices = found.choices if single else ()
    shown = printable(value_text(discreet(value, key)))
    return SettingLine(key, shown, printable(source), found.about, choices, single, where)


def _described(kind: type[Any], before: str = "") -> Iterator[tuple[str, _Metadata]]:
    hints = get_type_hints(kind, include_extras=True)
    for each in fields(kind):
        key, hint = before + each.name, _bare(hints[each.name])
        about = str(each.metadata.get("description", ""))
        if is_dataclass(hint):
            yield from _described(cast("type[Any]", hint), f"{key}.")
        elif get_origin(hint) is Literal:
            yield key, _Metadata(about, tuple(map(str, get_args(hint))), single=True)
        elif hint is bool:
            yield key, _Metadata(about, ("true", "false"), single=True)
        else:
            yield key, _Metadata(about, single=get_origin(hint) is None)


def _bare(hint: Any) -> Any:
    """Return the type without its checks and without None."""
    while get_origin(hint) in {Annotated, Union, UnionType}:
        parts = get_args(hint)
        rest = [part for part in parts if part is not NoneType]
        if get_origin(hint) is not Annotated and len(rest) != 1:
            return tuple[Any]
        hint = rest[0]
    return hint
