"""Judges what the readers of text_calls make of a case: a reply of a model, or JSON, and what it should be read as.

Names and schemas of tools are not in the cases, so every name will do and values between tags are typed by their look.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ba_tui.providers.text_calls.json_dialects import JsonDecoder
from ba_tui.providers.text_calls.known_tools import RequestTools
from ba_tui.providers.text_calls.replies import ParsedReply, read, read_command

CASES = Path(__file__).resolve().parents[4] / "shared" / "data" / "tool_call_text.jsonl"
REFUSED = "refused"
BAR_SECONDS = 2.0
_MARKS = re.compile(r"start='(?P<start>.*?)'\|end='(?P<end>.*?)'")
_OBSERVED = re.compile(r"\s*\n\s*Observation:.*", re.DOTALL)


@dataclass(frozen=True)
class Judged:
    """``got``: what was read, as JSON can hold it. ``cut``: the expectation held an observation that the model had made
    up, and is compared without it, as the reader drops it."""

    id: str
    suite: str
    kind: str
    right: bool
    got: object
    expected: object
    seconds: float
    core: bool = False
    cut: bool = False


@dataclass
class Score:
    """How many of how many were right."""

    right: int = 0
    of: int = 0

    def add(self, right: bool) -> None:
        self.right += right
        self.of += 1

    def __str__(self) -> str:
        return f"{self.right}/{self.of}" + (f" ({self.right / self.of:.1%})" if self.of else "")


@dataclass
class Figures:
    """The scores that there are bars for."""

    suites: dict[str, Score] = field(default_factory=dict[str, Score])
    calling: Score = field(default_factory=Score)
    refusing: Score = field(default_factory=Score)
    core: Score = field(default_factory=Score)
    invented: int = 0
    slowest: float = 0.0

    def add(self, judged: Judged) -> None:
        self.suites.setdefault(judged.suite, Score()).add(judged.right)
        if judged.suite == "react-real" and judged.kind == "tool_call":
            self.calling.add(judged.right)
        if judged.kind == "error":
            self.refusing.add(judged.right)
        if judged.core:
            self.core.add(judged.right)
        if judged.suite.startswith("react") and judged.kind == "final" and "calls" in str(judged.got):
            self.invented += 1
        self.slowest = max(self.slowest, judged.seconds)

    def __str__(self) -> str:
        return (
            f"react-real that call a tool {self.calling}, errors refused {self.refusing}, json core {self.core}, "
            f"calls invented {self.invented}, slowest {self.slowest:.2f} s"
        )


def cases(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text("utf-8").splitlines():
        if line.strip():
            yield json.loads(line)


def judge(case: dict[str, Any]) -> Judged:
    expected = case.get("expected") or {}
    start = time.perf_counter()
    reader = _read_json if case["suite"] in {"json-repair", "json-args", "json-partial"} else _read_reply
    got = reader(case)
    seconds = time.perf_counter() - start
    wanted, cut = _settled(expected)
    right = seconds <= BAR_SECONDS and any(_same(got, each) for each in _accepted(case, wanted))
    core = bool(case.get("other_tools_agree"))
    return Judged(case["id"], case["suite"], expected.get("kind", ""), right, got, wanted, seconds, core, cut)


def _read_reply(case: dict[str, Any]) -> object:
    raw, known = case["raw"], RequestTools(None)
    if marks := _MARKS.search(case.get("format", "")):
        # The cases hold what stands between the marks; a reply has both.
        start = "" if raw.startswith(marks["start"]) else marks["start"]
        raw = f"{start}{raw}{marks['end']}"
    found = read_command(raw, known) if case["suite"].startswith("swe-action") else read(raw, known)
    return _told(found)


def _told(found: ParsedReply) -> object:
    calls = [{"name": call.name, "arguments": call.arguments} for call in found.calls if not call.problem]
    if calls:
        return {"calls": calls, "prose": found.prose}
    if found.calls:
        return {REFUSED: found.calls[0].problem}
    return {"final": found.prose} if found.final else {"answer": found.prose}


def _read_json(case: dict[str, Any]) -> object:
    raw = case["raw"]
    readers: list[Callable[[], Any]] = [lambda: JsonDecoder().whole(raw)]
    if case.get("format") == "partial-json":
        # A stream that is still going on: what there is of its last string counts.
        readers = [
            lambda: JsonDecoder().value(raw.strip())[0],
            lambda: JsonDecoder().value(f'{raw.strip()}"')[0],
            *readers,
        ]
    problem = ""
    for reader in readers:
        try:
            return {"json": reader()}
        except ValueError as error:
            problem = str(error)
    return {REFUSED: problem}


def _settled(expected: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The expectation without an observation that the model made up, and whether there was one.

    An input that is a JSON object is compared as one, also where the cases have it as text.
    """
    given = expected.get("input")
    if not isinstance(given, str):
        return expected, False
    kept = _OBSERVED.sub("", given).strip()
    if kept.startswith("{"):
        with suppress(ValueError):
            return {**expected, "input": json.loads(kept.removesuffix("```"))}, kept != given.strip()
    return {**expected, "input": kept}, kept != given.strip()


def _accepted(case: dict[str, Any], wanted: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield wanted
    if also := case.get("also_accept"):
        yield {**wanted, "text": also}


def _same(got: Any, wanted: dict[str, Any]) -> bool:
    match wanted.get("kind"):
        case "tool_call":
            calls = got.get("calls", [])
            arguments = wanted.get("input", wanted.get("arguments"))
            return [(call["name"], _bare(call["arguments"])) for call in calls] == [(wanted["name"], _bare(arguments))]
        case "tool_calls":
            return got.get("calls") == wanted["calls"]
        case "command":
            calls = got.get("calls", [])
            commands = [_bare(call["arguments"]["command"]) for call in calls]
            return commands == [_bare(wanted["command"])] and _bare(got["prose"]) == _bare(wanted["thought"])
        case "final":
            return _bare(got.get("final")) == _bare(wanted["text"])
        case "json":
            return got.get("json", REFUSED) == wanted["value"]
        case "error" | "none" | "passthrough":
            # Whatever is no call and no value: refused with a reason, or left as the words that it is.
            return not got.keys() & {"calls", "json", "final"}
        case _:
            return False


def _bare(value: object) -> object:
    return value.strip() if isinstance(value, str) else value
