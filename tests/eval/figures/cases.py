"""The handwritten cases: answers whose numbers are marked, with the observations that they were written from.

A mark is ``⟦text|label⟧``. Labels: ``s=RAW`` sourced (with ``RAW*FACTOR`` where units are converted), ``d=FORMULA``
derived, ``g`` given, ``u:KIND`` unsourced, ``n:KIND`` no figure. ``problems`` says where a label contradicts its own
case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).with_name("handwritten")
_MARK = re.compile(r"⟦([^|⟧]*)\|([^⟧]*)⟧")
_LABELS = {"s": "sourced", "d": "derived", "g": "given", "u": "unsourced", "n": "not_a_figure"}
_DIGITS = {ord(wide): str(digit) for digit, wide in enumerate("０１２３４５６７８９")}


def handwritten() -> list[dict[str, Any]]:
    """All handwritten cases in the shape of the labelled set."""
    return [_case(raw) for file in sorted(FOLDER.glob("*.yaml")) for raw in yaml.safe_load(file.read_text("utf-8"))]


def load(path: Path) -> list[dict[str, Any]]:
    """The cases of a file with one JSON object a line."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def _case(raw: Mapping[str, Any]) -> dict[str, Any]:
    answer, figures, place = "", list[dict[str, Any]](), 0
    for mark in _MARK.finditer(raw["answer"]):
        answer += raw["answer"][place : mark.start()]
        kind, _, rest = mark[2].partition(":" if mark[2][0] in "un" else "=")
        label = _LABELS[kind]
        figure = {"text": mark[1], "start": len(answer), "end": len(answer) + len(mark[1]), "label": label}
        figures.append({**figure, "tags": [rest] if kind in "un" else [], "from": rest if kind in "sd" else ""})
        answer += mark[1]
        place = mark.end()
    answer += raw["answer"][place:]
    observations = [{"call": f"R{number}", **each} for number, each in enumerate(raw["observations"], 1)]
    wrong = any(figure["label"] == "unsourced" for figure in figures)
    return {
        **{key: raw[key] for key in ("id", "lang", "domain", "prompt")},
        "observations": observations,
        "answer": answer,
        "figures": figures,
        "tags": ["handwritten", "has_errors" if wrong else "clean"],
    }


def problems(case: Mapping[str, Any]) -> Iterator[str]:
    """Labels that their own case contradicts: a token that no observation has, a formula that prints otherwise."""
    texts = [observation["text"] for observation in case["observations"]]
    for figure in case["figures"]:
        where = f"{case['id']}: {figure['text']!r}"
        if figure["label"] == "sourced":
            token, _, factor = figure["from"].partition("*")
            if not any(token in text for text in texts):
                yield f"{where}: no observation has {token!r}"
            value = float(re.sub(r"[A-Za-z]+$|(?<=\d),(?=\d{3})", "", token)) * float(factor or 1)
            if not _prints(value, figure["text"], hedged=True):
                yield f"{where}: {value} does not print so"
        elif figure["label"] == "derived" and not _prints(eval(figure["from"]), figure["text"], hedged=True):
            yield f"{where}: {figure['from']} is {eval(figure['from'])}"


_SCALES = {"k": 1e3, "M": 1e6, "万": 1e4, "亿": 1e8, "million": 1e6, "millones": 1e6, "Mio.": 1e6, "Mrd.": 1e9}


def _prints(value: float, text: str, *, hedged: bool) -> bool:
    """Whether ``value`` rounds to what ``text`` shows, in some reading of its separators."""
    plain = text.translate(_DIGITS).replace("，", "").replace("−", "-").replace("\u202f", " ").replace("\u00a0", " ")
    clock = [float(part.replace(",", ".")) for part in re.findall(r"\d+(?:[.,]\d+)?", plain)]
    if len(clock) == 2 and re.search(r"h|min", plain):
        shown = clock[0] * 60 + clock[1]
        return abs(abs(value) - shown) <= 0.5 + 1e-9
    suffix = next((name for name in _SCALES if plain.rstrip().endswith(name)), "")
    number = plain.removesuffix(suffix).strip().lstrip("+-")
    readings = {number.replace(",", "").replace(" ", ""), number.replace(".", "").replace(" ", "").replace(",", ".")}
    for reading in readings:
        if reading.count(".") < 2 and re.fullmatch(r"\d+(?:\.\d+)?", reading):
            step = 10.0 ** -len(reading.partition(".")[2]) * _SCALES.get(suffix, 1)
            shown = float(reading) * _SCALES.get(suffix, 1)
            if abs(abs(value) - shown) <= step / 2 * (1 + 1e-6) or (
                hedged and abs(abs(value) - shown) <= 0.05 * shown and shown % 10 == 0
            ):
                return True
    return False
