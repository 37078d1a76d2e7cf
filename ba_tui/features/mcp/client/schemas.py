"""The schema of a tool's arguments, as models and their providers take it: one object with one list of properties.

Providers refuse choices and references at the top of a schema. The properties of all choices become one list, in which
only what every choice needs is required; so each call that the server would take is still possible.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast
from urllib.parse import unquote

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import hidden_in, legible
from ba_tui.core.text.wording import byte_size, one_line

Schema: TypeAlias = dict[str, Any]
SCHEMA_BYTES = 40_000
DEEPEST = 20
MOST_PARTS = 300
"""Choices and references at the top of a schema."""
_PROPERTY = regex(r"[A-Za-z0-9_.-]{1,64}")
_COMBINED = ("$ref", "oneOf", "anyOf", "allOf", "not", "if", "then", "else")
"""Keys that providers refuse at the top of a schema. The server still checks them."""


class _Unusable(Exception):
    """Why no list of properties can be made of a schema."""


def usable_schema(given: Any) -> tuple[dict[str, Any], str, list[str]]:
    """Return the schema of a tool's arguments as models are given it, why it can't be used, and remarks."""
    if not isinstance(given, Mapping):
        return {}, "its parameters have no schema", []
    size = len(canonical(cast("Mapping[str, Any]", given)))
    if size > SCHEMA_BYTES:
        return {}, f"its schema has {byte_size(size)}, and ba takes {byte_size(SCHEMA_BYTES)}", []
    hidden: list[str] = []
    try:
        schema = cast("dict[str, Any]", _clean(given, hidden, 0))
    except RecursionError:
        return {}, f"its schema is nested more than {DEEPEST} levels", []
    remarks = [f"in its schema hidden characters were removed ({len(hidden)} places)"] if hidden else []
    if schema.setdefault("type", "object") != "object":
        return {}, "its schema describes no object", remarks
    combined = [key for key in _COMBINED if key in schema]
    try:
        schema = _Flat(schema).flat(schema)
    except _Unusable as error:
        return {}, str(error), remarks
    if combined and combined != ["$ref"]:
        left = ", ".join(key for key in combined if key != "$ref")
        remarks.append(f"models get one list of parameters in place of {left} at the top of its schema")
    schema.setdefault("properties", {})
    return schema, _invalid(schema), remarks


def _invalid(schema: Mapping[str, Any]) -> str:
    """Why no call could be checked by ``schema``, or no provider would take it; empty when it will do."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - not before a server lists tools
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415

    for ref in _refs(schema):
        if not ref.startswith("#"):
            return f"its schema refers to another document, {one_line(ref, 80)}"
        if ref.startswith("#/") and _target(schema, ref) is None:
            return f"its schema refers to {one_line(ref, 80)}, which it does not define"
    names = _properties(dict(schema))
    if odd := next((name for name in names if not _PROPERTY.fullmatch(name)), ""):
        return f"models can't be given a parameter named {one_line(odd, 40)!r}"
    try:
        Draft202012Validator.check_schema(schema)
    except (SchemaError, RecursionError) as error:
        return f"its schema is not valid: {one_line(getattr(error, 'message', str(error)), 120)}"
    return ""


def _refs(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Any]", value).items():
            if key in {"$ref", "$dynamicRef"} and isinstance(item, str):
                yield item
            yield from _refs(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _refs(item)


def _clean(value: Any, hidden: list[str], depth: int) -> Any:
    if depth > DEEPEST:
        raise RecursionError
    match value:
        case str():
            found = hidden_in(value)
            hidden.extend(found[:1])
            return legible(value) if found else value
        case Mapping():
            given = cast("Mapping[Any, Any]", value)
            return {_clean(str(key), hidden, depth): _clean(item, hidden, depth + 1) for key, item in given.items()}
        case list():
            return [_clean(item, hidden, depth + 1) for item in cast("list[Any]", value)]
        case _:
            return value


def canonical(value: Mapping[str, Any]) -> str:
    """Return a schema as text that is equal for equal schemas."""
    return json.dumps(value, sort_keys=True, default=str)


class _Flat:
    """Makes one list of properties of a schema and of the choices and references at its top. Raises _Unusable."""

    def __init__(self, root: Schema) -> None:
        self._root, self._parts = root, 0

    def flat(self, schema: Schema, inside: tuple[str, ...] = ()) -> Schema:
        """Return ``schema`` without choices and references at its top. ``inside``: the references that led to it."""
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise _Unusable(f"its schema has more than {MOST_PARTS} choices and references at its top")
        found = {key: value for key, value in schema.items() if key not in _COMBINED}
        if isinstance(ref := schema.get("$ref"), str):
            found = _all_of([found, self._referred(ref, inside)])
        for part in _schemas(schema.get("allOf")):
            found = _all_of([found, self.flat(part, inside)])
        for key in ("anyOf", "oneOf"):
            if key in schema:
                found = _all_of([found, _any_of(self._choices(schema[key], inside))])
        for part in _schemas([schema.get("then"), schema.get("else")]):
            found = _all_of([found, {"properties": self.flat(part, inside).get("properties", {})}])
        return found

    def _referred(self, ref: str, inside: tuple[str, ...]) -> Schema:
        if not ref.startswith("#"):
            raise _Unusable(f"its schema refers to another document, {one_line(ref, 80)}")
        if ref in inside:
            raise _Unusable(f"its schema refers to itself by {one_line(ref, 80)}")
        target = _target(self._root, ref)
        if not isinstance(target, dict):
            raise _Unusable(f"its schema refers to {one_line(ref, 80)}, which it does not define")
        return self.flat(cast("Schema", target), (*inside, ref))

    def _choices(self, given: Any, inside: tuple[str, ...]) -> list[Schema]:
        choices = [self.flat(part, inside) for part in _schemas(given)]
        objects = [choice for choice in choices if _may_be_object(choice)]
        if not objects:
            raise _Unusable("no choice at the top of its schema is an object")
        return objects


def _any_of(choices: Sequence[Schema]) -> Schema:
    """Return one schema that takes whatever one of ``choices`` takes."""
    variants: dict[str, list[Any]] = {}
    for choice in choices:
        for name, each in _properties(choice).items():
            known = variants.setdefault(name, [])
            known += [each] if each not in known else []
    properties = {name: found[0] if len(found) == 1 else {"anyOf": found} for name, found in variants.items()}
    needed = [_required(choice) for choice in choices]
    found: Schema = {"properties": properties, "required": [n for n in needed[0] if all(n in each for each in needed)]}
    if all(choice.get("additionalProperties") is False for choice in choices):
        found["additionalProperties"] = False
    return found


def _all_of(parts: Sequence[Schema]) -> Schema:
    """Return the first schema with the properties of the others added."""
    first, *others = parts
    found, properties, required = dict(first), dict(_properties(first)), _required(first)
    for other in others:
        for name, each in _properties(other).items():
            same = name not in properties or properties[name] == each
            properties[name] = each if same else {"allOf": [properties[name], each]}
        required += [name for name in _required(other) if name not in required]
        found = {**{key: other[key] for key in ("type", "description", "title") if key in other}, **found}
        if other.get("additionalProperties") is False:
            found.setdefault("additionalProperties", False)
    if first.get("additionalProperties") is False and not set(properties) <= set(_properties(first)):
        # It is closed for its own properties: closed for all of them, it would take no call of the others.
        del found["additionalProperties"]
    found["properties"] = properties
    known = [name for name in required if name in properties]
    return {**found, "required": known} if known else {key: each for key, each in found.items() if key != "required"}


def _may_be_object(schema: Schema) -> bool:
    kind: Any = schema.get("type", "object")
    return "object" in (cast("list[Any]", kind) if isinstance(kind, list) else [kind])


def _properties(schema: Schema) -> Schema:
    given: Any = schema.get("properties")
    return cast("Schema", given) if isinstance(given, dict) else {}


def _required(schema: Schema) -> list[str]:
    given: Any = schema.get("required")
    return [name for name in cast("list[Any]", given) if isinstance(name, str)] if isinstance(given, list) else []


def _schemas(given: Any) -> list[Schema]:
    each: list[Any] = cast("list[Any]", given) if isinstance(given, list) else []
    return [cast("Schema", part) for part in each if isinstance(part, dict)]


def _target(root: Mapping[str, Any], ref: str) -> Any:
    """Return what a reference within the document leads to; None when there is nothing."""
    at: Any = root
    for step in ref.removeprefix("#").split("/")[1:]:
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(at, Mapping):
            at = cast("Mapping[str, Any]", at).get(key)
        elif isinstance(at, list):
            items = cast("list[Any]", at)
            at = items[int(key)] if key.isascii() and key.isdigit() and int(key) < len(items) else None
        else:
            return None
    return at
