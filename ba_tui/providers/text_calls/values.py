"""Calls out of JSON values: under which keys models put a tool's name and its arguments, and what they wrap them in.

How the JSON is found and read is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from ba_tui.core.values import frozen
from ba_tui.providers.text_calls.known import Given, Known, Written
from ba_tui.providers.wire.shapes import fields, items, text_of

NAMES = ("tool", "tool_name", "toolName", "name", "action", "function", "function_name", "recipient_name")
ARGUMENTS = (
    *("args", "arguments", "input", "parameters", "params", "action_input", "tool_input", "tool_args", "kwargs"),
    *("toolInput", "function_args", "action_args"),
)
WRAPPERS = ("tool_calls", "tool_uses", "function_call", "tool_call", "function_calls", "calls", "actions")
BESIDE = frozenset({"id", "type", "index", "call_id", "thought", "reason", "reasoning", "explanation", "output_level"})
"""Keys that may stand beside name and arguments without being part of them."""
KEYS = frozenset((*NAMES, *ARGUMENTS, *WRAPPERS, "type", "id", "thought"))
"""A call in JSON begins with one of these."""
FINAL = frozenset({"finalanswer", "final_answer", "final answer", "finish"})
DEEPEST = 4


@frozen
class Said:
    """What a JSON value says: calls, or the final answer as text."""

    calls: tuple[Written, ...] = ()
    final: str | None = None


def said(value: object, known: Known, source: str, *, inline: bool = False) -> Said | None:
    """The calls in ``value``; None when it is something else than calls.

    ``inline``: where a call is expected, its arguments may also stand beside the name instead of under a key.
    """
    found = list(_flat(value, DEEPEST))
    calls: list[Written] = []
    for each in found:
        final = _final(each, known)
        if final is not None and len(found) == 1:
            return Said(final=final)
        call = _call(each, known, source, inline=inline)
        if call is None:
            return None
        calls.append(call)
    return Said(tuple(calls)) if calls else None


def _flat(value: object, depth: int) -> Iterator[dict[str, Any]]:
    """The objects that may be calls, out of lists and wrappers; an empty one for what is no object."""
    if isinstance(value, list) and value and depth:
        for each in cast("list[Any]", value):
            yield from _flat(each, depth - 1)
        return
    whole = fields(cast("object", value))
    wrapped = next((whole[key] for key in WRAPPERS if isinstance(whole.get(key), dict | list)), None)
    if wrapped is not None and depth and not any(isinstance(whole.get(key), str) for key in NAMES):
        yield from _flat(wrapped, depth - 1)
        return
    inner = whole.get("function")
    # As the API has it: {"type": "function", "function": {"name": …, "arguments": …}}
    yield cast("dict[str, Any]", inner) if isinstance(inner, dict) else whole


def _final(whole: dict[str, Any], known: Known) -> str | None:
    name = next((whole[key] for key in NAMES if isinstance(whole.get(key), str)), "")
    if name.lower() not in FINAL or (not known.open and known.find(name)):
        return None
    given = next((whole[key] for key in ARGUMENTS if key in whole), None)
    if len(fields(given)) == 1:
        given = next(iter(fields(given).values()))
    return given if isinstance(given, str) else None


def _call(whole: dict[str, Any], known: Known, source: str, *, inline: bool) -> Written | None:
    key = next((key for key in NAMES if isinstance(whole.get(key), str)), None)
    if key is None:
        return _keyed(whole, known, source)
    given_at = next((each for each in ARGUMENTS if each in whole), None)
    name = text_of(whole[key])
    rest = {each: whole[each] for each in whole if each not in (key, given_at)}
    if given_at is not None:
        if not rest.keys() <= BESIDE and not known.open:
            return None
        return known.read(name, _given(whole[given_at]), source)
    beside = {each: rest[each] for each in rest if each not in BESIDE or each in known.properties(name)}
    if not beside or (inline and beside.keys() <= known.properties(name)):
        return known.read(name, beside, source)
    return None


def _keyed(whole: dict[str, Any], known: Known, source: str) -> Written | None:
    """``{"read_file": {"path": …}}``: the name of a tool that there is, as the only key."""
    if len(whole) != 1 or known.open:
        return None
    ((name, given),) = whole.items()
    return (
        known.read(name, cast("dict[str, Any]", given), source)
        if isinstance(given, dict) and known.find(name)
        else None
    )


def _given(value: object) -> Given:
    """Arguments as they may stand under their key; what is neither an object nor text reads as its JSON."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    if items(value) and len(items(value)) == 1 and isinstance(items(value)[0], dict):
        return fields(items(value)[0])
    return json.dumps(value)
