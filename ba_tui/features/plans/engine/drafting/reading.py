"""Reads the plan out of an answer: a call of submit_plan, or JSON in its text. Anything may stand in either."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from ba_tui.core.messages import Message
from ba_tui.core.teamwork.plans import SubTask
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import hidden_removed
from ba_tui.core.text.wording import clipped, one_line
from ba_tui.features.plans.engine.drafting.values import MOST, Written

NAME = "submit_plan"
LOOPS = 10
"""Model requests of a step whose plan says nothing else."""
MOST_LOOPS = 500
LONGEST = 8_000
"""Characters of a text of a plan."""
_APART = regex(r"[^\w-]+")
BRACKETS = 40
"""Places in a text where JSON may begin that are looked at."""


def submitted(reply: Message) -> dict[str, Any] | None:
    """The plan in ``reply`` as it was written; None when there is none."""
    for call in reply.calls:
        if call.name == NAME and call.malformed is None:
            inner = call.input.get("plan")
            if "subtasks" not in call.input and isinstance(inner, dict):
                return cast("dict[str, Any]", inner)
            return call.input
    malformed = [call.malformed for call in reply.calls if call.name == NAME and call.malformed]
    return next((found for text in (*malformed, reply.text) for found in _plans(text)), None)


def _plans(text: str) -> Iterator[dict[str, Any]]:
    """Whatever in ``text`` looks like a plan."""
    from ba_tui.providers.text_calls.json_dialects import Decoder  # noqa: PLC0415 - most plans come as a call

    decoder, at = Decoder(), 0
    for _ in range(BRACKETS):
        starts = [place for place in (text.find("{", at), text.find("[", at)) if place >= 0]
        if not starts:
            return
        at = min(starts)
        try:
            found, end = decoder.value(text, at)
        except ValueError:
            at += 1
            continue
        at = max(end, at + 1)
        if isinstance(found, list):
            steps = cast("list[Any]", found)
            found = {"subtasks": steps} if steps and all(isinstance(each, dict) for each in steps) else {}
        plan = cast("dict[str, Any]", found)
        inner = plan.get("plan")
        plan = cast("dict[str, Any]", inner) if isinstance(inner, dict) else plan
        if isinstance(plan.get("subtasks"), list) or plan.get("question"):
            yield plan


def written(plan: Mapping[str, Any]) -> Written:
    """``plan`` as values; what can't be read is in ``wrong``, a line each."""
    steps, wrong = plan.get("subtasks", []), list[str]()
    if not isinstance(steps, list):
        return Written(question=_text(plan.get("question")), wrong=("subtasks: expected a list",))
    listed = cast("list[Any]", steps)
    head = (_text(plan.get("goal")), _texts(plan.get("assumptions")), _text(plan.get("question")))
    if len(listed) > MOST:
        return Written(head[0], (), *head[1:], size=len(listed))
    objects = [
        (number, cast("dict[str, Any]", each)) for number, each in enumerate(listed, 1) if isinstance(each, dict)
    ]
    subtasks = tuple([_step(number, each, wrong) for number, each in objects])
    wrong += [
        f"step {number}: expected an object" for number, each in enumerate(listed, 1) if not isinstance(each, dict)
    ]
    return Written(head[0], subtasks, *head[1:], _covers(plan.get("covers")), tuple(wrong), len(listed))


def _step(number: int, step: dict[str, Any], wrong: list[str]) -> SubTask:
    raw = _text(step.get("id"))
    name = _id(raw) or f"s{number}"
    if name != raw:
        told = f"{clipped(raw, 64)!r} is no id: write letters, digits, - and _" if raw else "lacks an id"
        wrong.append(f"step {number}: {told}")
    args: Any = step.get("tool_args") or {}
    if not isinstance(args, dict):
        wrong.append(f"step {name}: tool_args: expected an object")
        args = {}
    description, tool = _text(step.get("description")), _text(step.get("tool_name"))
    if not description and not tool:
        wrong.append(f"step {name}: lacks a description")
    loops = step.get("max_loops")
    return SubTask(
        name,
        description or (f"Call {tool}" if tool else ""),
        _text(step.get("expected_output")),
        tool,
        cast("dict[str, Any]", args),
        tuple(_id(each) for each in _texts(step.get("dependencies"))),
        tuple(_id(each) for each in _texts(step.get("optional"))),
        _text(step.get("role")),
        critical=step.get("critical") is True,
        max_loops=min(max(loops, 1), MOST_LOOPS) if type(loops) is int else LOOPS,
    )


def _id(text: str) -> str:
    return _APART.sub("-", text).strip("-")[:64]


def _covers(value: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, list):
        return ()
    each = [cast("dict[str, Any]", one) for one in cast("list[Any]", value) if isinstance(one, dict)]
    return tuple((one_line(_text(one.get("wanted")), 200), _texts(one.get("subtasks"))) for one in each[:MOST])


def _text(value: Any) -> str:
    """Text that people read: without characters that nobody sees."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    return hidden_removed(value).strip()[:LONGEST] if isinstance(value, str) else ""


def _texts(value: Any) -> tuple[str, ...]:
    listed = cast("list[Any]", value) if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(text for text in map(_text, listed[:MOST]) if text))
