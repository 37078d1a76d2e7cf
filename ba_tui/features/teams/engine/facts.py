"""Facts at the end of members' reports, parsed leniently because weak models write them inexactly. Pure.

A report may end with::

    Facts:
    - orders_march: 412 (confidence 0.9)
    - best_region: North

or with the same as JSON, ``{"facts": [{"key": …, "value": …, "confidence": …}]}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import clipped
from ba_tui.core.values import frozen

MOST = 50
"""Maximum facts of one report; further ones are ignored."""
LONGEST_KEY, LONGEST_VALUE = 60, 300
USUAL = 0.5
"""The default confidence of a fact."""
ASKED = (
    "End your report with the facts that others must agree with, one a line, under a line that says Facts, such as\n"
    "Facts:\n- short_key: value (confidence 0.9)\nUse the same key for the same thing. Leave the list out when there "
    "are none."
)
"""The part of members' prompts that describes the form of facts."""
_HEAD = regex(r"(?im)^[\s>#*_]*(?:key |shared )?facts[*_]*\s*:[*_\s]*$")
_LINE = regex(r"^[\s>]*(?:[-*•+]|\d+[.)])?\s*[`*_\"]*([^\s:=`*\"][^:=`*\"]{0,80}?)[`*_\"]*\s*[:=]\s*[*_]*(.+?)\s*$")
_SURE = regex(r"(?i)[\s,;]*[(\[]?\s*confidence\s*[:=]?\s*(1(?:\.0+)?|0?\.\d+|0|\d{1,3}\s*%)\s*[)\]]?\s*$")
_FENCE = regex(r"^\s*`{3,}")
_FENCE_BEFORE, _FENCE_AFTER = regex(r"`{3,}\w*$"), regex(r"^`{3,}")
_NOT_KEY = regex(r"[^\w]+")
_FIGURE = regex(
    r"^([$€£¥]|[A-Za-z]{3} )?\s*([+-]?(?:\d{1,3}(?:[ ,_'’\u00a0\u202f]\d{3})+|\d+)(?:\.\d+)?|[+-]?\.\d+)"
    r"\s*((?:[^\d\s:.-][^\d:]{0,24})?)\.?$"
)
_TIMES = {"k": 1e3, "thousand": 1e3, "m": 1e6, "mio": 1e6, "million": 1e6, "bn": 1e9, "billion": 1e9}
_BY_MARK = {"$": "usd", "€": "eur", "£": "gbp", "%": "%", "percent": "%"}


@frozen
class StatedFact:
    """``confidence`` from 0 to 1."""

    key: str
    value: Any
    confidence: float = USUAL


@frozen
class StatedFigure:
    """A number with its unit in lower case; an empty unit where none was written."""

    number: float
    unit: str = ""


def facts_in(report: str) -> tuple[str, Sequence[StatedFact]]:
    """Return the report without its block of facts, and the facts; the last fact of a key wins.

    Lines that are not facts are left out. A report without a block is returned unchanged.
    """
    body, found = _from_json(report)
    if found is None:
        body, found = _from_lines(report)
    named = {fact.key: fact for fact in found}
    return body, tuple(named.values())[:MOST]


def as_fact(value: Any) -> StatedFact | None:
    """Return the fact in a mapping with key, value and confidence; None for anything else."""
    if not isinstance(value, dict):
        return None
    found = cast("dict[str, Any]", value)
    key, said = key_of(str(found.get("key", ""))), found.get("value")
    if not key or said is None or isinstance(said, dict | list):
        return None
    if isinstance(said, str):
        said = clipped(" ".join(said.split()), LONGEST_VALUE)
    if isinstance(said, float) and said != said:
        return None
    return StatedFact(key, said, _confidence(found.get("confidence"))) if said != "" else None


def key_of(text: str) -> str:
    """Normalize ``text`` as a key: ``Orders in March`` and ``orders-in-march`` are equal."""
    return _NOT_KEY.sub("_", text.strip().casefold()).strip("_")[:LONGEST_KEY]


def figure_of(value: Any) -> StatedFigure | None:
    """Return ``value`` as a number, such as ``1,240 EUR`` or ``1.2 million``; None for words."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return StatedFigure(float(value)) if abs(value) < 1e300 else None
    if not isinstance(value, str) or not (found := _FIGURE.match(value.strip().strip("~≈").strip())):
        return None
    before, digits, unit = (found[1] or "").strip().casefold(), found[2], found[3].strip(" .").casefold()
    number = float(_grouping(digits))
    word, _, rest = unit.partition(" ")
    if word in _TIMES:
        number, unit = number * _TIMES[word], rest
    unit = unit or before
    return StatedFigure(number, _BY_MARK.get(unit, unit))


def _grouping(digits: str) -> str:
    return "".join(letter for letter in digits if letter.isdigit() or letter in ".+-")


def _from_json(report: str) -> tuple[str, Sequence[StatedFact] | None]:
    start = report.rfind('"facts"')
    start = report.rfind("{", 0, start) if start >= 0 else -1
    if start < 0:
        return report, None
    try:
        value, end = json.JSONDecoder().raw_decode(report, start)
    except (ValueError, RecursionError):
        return report, None
    listed: Any = cast("dict[str, Any]", value).get("facts") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        return report, None
    found = [fact for each in cast("list[Any]", listed) if (fact := as_fact(each))]
    return "\n\n".join(filter(None, (_unfenced(report[:start]), _unfenced(report[end:], "start")))), found


def _unfenced(text: str, where: Literal["start", "end"] = "end") -> str:
    """Return ``text`` without the code fence that surrounded a neighbouring block."""
    text = text.strip()
    return (_FENCE_BEFORE if where == "end" else _FENCE_AFTER).sub("", text).strip()


def _from_lines(report: str) -> tuple[str, Sequence[StatedFact]]:
    heads = list(_HEAD.finditer(report))
    if not heads:
        return report, ()
    head = heads[-1]
    found, rest = list[StatedFact](), list[str]()
    lines = iter(report[head.end() :].splitlines())
    for line in lines:
        if fact := _fact(line):
            found.append(fact)
        elif line.strip() and not _FENCE.match(line):
            rest = [line, *lines]
            break
    if not found:
        return report, ()
    body = _unfenced(report[: head.start()])
    return "\n\n".join(filter(None, (body, "\n".join(rest).strip()))), found


def _fact(line: str) -> StatedFact | None:
    found = _LINE.match(line)
    if not found:
        return None
    said, sure = found[2].strip(), None
    if mark := _SURE.search(said):
        said, sure = said[: mark.start()], mark[1]
    return as_fact({"key": found[1], "value": said.strip().strip("`*\"'").strip(), "confidence": sure})


def _confidence(value: Any) -> float:
    if isinstance(value, bool) or value is None:
        return USUAL
    try:
        said = str(value).strip()
        number = float(said.rstrip("% ")) / (100 if said.endswith("%") else 1)
    except ValueError:
        return USUAL
    return min(max(number, 0.0), 1.0) if number == number else USUAL


def fact_lines(facts: Sequence[StatedFact]) -> Iterator[str]:
    """Return the facts as lines for prompts."""
    for fact in facts:
        yield f"- {fact.key}: {fact.value}"
