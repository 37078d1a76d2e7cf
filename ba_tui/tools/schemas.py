"""Checks JSON Schemas and values against them, and fills in defaults. Draft 2020-12, no network.

The arguments of a call that really runs are judged again by the guard around its tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from ba_tui.core.text.wording import clipped, did_you_mean, suggestion
from ba_tui.settings.document import KeyPath

Complaint = tuple[KeyPath, str]
_PLAIN = {"type", "required", "additionalProperties", "$defs", "properties"}
"""What can be judged of an object while some of its values are unknown."""
_KINDS = {
    "str": "string ",
    "bool": "boolean ",
    "int": "integer ",
    "float": "number ",
    "list": "array ",
    "dict": "object ",
}


def schema_complaint(schema: Mapping[str, Any]) -> Complaint | None:
    """Where ``schema`` is no schema, and why."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - 0.15 s, and only where there are workflows

    meta: Any = Draft202012Validator.META_SCHEMA
    found = complaints(dict(schema), meta) or complaints(None, schema, only_broken=True)
    return (found[0][0], f"is not a valid JSON Schema: {found[0][1]}") if found else None


def complaints(value: Any, schema: Mapping[str, Any], *, only_broken: bool = False) -> list[Complaint]:
    """Where ``value`` does not fit ``schema``: what was expected, what came, the nearest name.

    ``only_broken``: say nothing of the value, only that the schema itself can't be used.
    """
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - see above
    from referencing import Registry  # noqa: PLC0415 - comes with jsonschema
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    nothing_else: Any = Registry()  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    validator: Any = Draft202012Validator(dict(schema), registry=nothing_else)
    try:
        found = [line for error in validator.iter_errors(value) for line in violations(error)]
    except Unresolvable as error:
        return [((), f"the schema refers to {error.ref}, which is not in it")]
    except (re.error, RecursionError) as error:
        return [((), f"the schema has a pattern or a reference that can't be used: {error}")]
    return [] if only_broken else found


def with_defaults(value: Any, schema: Mapping[str, Any]) -> Any:
    """``value`` with what ``schema`` gives as defaults for what is missing, in objects within it too."""
    properties: Any = schema.get("properties")
    if not isinstance(value, dict) or not isinstance(properties, dict):
        return cast("Any", value)
    found = {**cast("dict[str, Any]", value)}
    for name, part in cast("dict[str, Any]", properties).items():
        inner = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
        if name in found:
            found[name] = with_defaults(found[name], inner)
        elif "default" in inner:
            found[name] = inner["default"]
    return found


def literal_complaints(args: Mapping[str, Any], schema: Mapping[str, Any], unsure: Sequence[str]) -> list[Complaint]:
    """The same for arguments of which those in ``unsure`` are not known before the run."""
    properties: Any = schema.get("properties", {})
    known = {name: True if name in unsure else part for name, part in dict(properties).items()}
    kept = {key: part for key, part in schema.items() if not unsure or key in _PLAIN}
    return complaints(dict(args), {**kept, "properties": known})


def violations(error: Any) -> Iterator[Complaint]:
    """A ValidationError of jsonschema in our words."""
    at: KeyPath = tuple(error.absolute_path)
    schema, got, expected = error.schema, error.instance, error.validator_value
    match error.validator:
        case "required":
            for name in (name for name in expected if name not in got):
                part = schema.get("properties", {}).get(name)
                kind = f" ({part['type']})" if isinstance(part, dict) and "type" in part else ""
                yield at, f"lacks {name!r}{kind}"
        case "additionalProperties" if expected is False:
            known = list(schema.get("properties", {}))
            for name in sorted(set(got) - set(known)):
                yield (*at, name), f"unknown parameter {str(name)[:100]!r}; {suggestion(str(name), known)}"
        case "type":
            kinds = expected if isinstance(expected, str) else " or ".join(expected)
            yield at, f"expected {kinds}, got {_KINDS.get(got.__class__.__name__, '')}{as_json(got)}"
        case "enum":
            choices = [str(each) for each in expected]
            close = did_you_mean(str(got)[:100], choices)
            yield at, f"expected one of {', '.join(choices)}, got {as_json(got)}{close}"
        case "minimum" | "maximum" | "minLength" | "maxLength" | "minItems" | "maxItems" | "exclusiveMinimum":
            yield at, f"expected {error.validator} {expected}, got {as_json(got)}"
        case "anyOf" | "oneOf" if error.context:
            yield at, next(violations(error.context[0]))[1]
        case _:
            yield at, error.message[:300]


def as_json(value: Any) -> str:
    """``value`` for a message, cut at 80 characters."""
    return clipped(json.dumps(value, ensure_ascii=False, default=str), 80)
