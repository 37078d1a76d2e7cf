"""``ba verify``: checks the figures in answers of any assistant against the tool results.

The judgement is made in ``ba_tui.features.figures``.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Generator
from typing import Annotated, Any, TextIO, cast

import typer

from ba_tui.cli.config import print_line, say
from ba_tui.cli.streams import tell_of_waiting
from ba_tui.core.errors import UsageError
from ba_tui.core.text.figures import DOUBTFUL, LABELS
from ba_tui.features.figures.check import check
from ba_tui.features.figures.observed.evidence import Evidence
from ba_tui.features.figures.verdicts import CheckedAnswer, Verdict, verdicts_json

UNSOURCED = 5
"""Exit code when a figure has no source."""
STDIN = "-"
LONGEST_LINE = 64_000_000
AROUND = 32
"""Characters shown before and after a figure."""


def verify(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="A JSON Lines file; - reads stdin.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON line for each answer, with every figure.")
    ] = False,
) -> int:
    """Check the figures of answers against tool results. The exit code is 5 when one is unsourced or misplaced.

    \b
    Each line is an object with an answer and what it was written from:
      {"id": "1", "prompt": "…", "observations":
        [{"call": "R1", "tool": "…", "input": "…", "text": "…"}], "answer": "…"}
    """
    totals: Counter[str] = Counter()
    wrong = 0
    with _opened(file) as lines:
        for number, line in _numbered(lines):
            try:
                case = _case(line)
            except ValueError as error:
                wrong += 1
                say(f"Line {number} was skipped: {error}.")
                continue
            totals += _print_verdicts(number, case, as_json=as_json)
    return 1 if wrong else UNSOURCED if any(totals[label] for label in DOUBTFUL) else 0


def _opened(file: str) -> TextIO:
    if file == STDIN:
        tell_of_waiting()
        return open(sys.stdin.fileno(), encoding="utf-8", errors="replace", closefd=False)
    try:
        return open(file, encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror or error}.", "Name a file of JSON lines.") from error


def _numbered(lines: TextIO) -> Generator[tuple[int, str]]:
    number = 0
    while line := lines.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE and not line.endswith("\n"):
            raise UsageError(f"Line {number} is longer than {LONGEST_LINE:,} characters.", "Write one answer a line.")
        if line.strip():
            yield number, line


def _case(line: str) -> dict[str, Any]:
    """Parse a line. Raises ValueError, in words, for other JSON."""
    try:
        case = json.loads(line)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"it is not JSON ({error})") from None
    if not isinstance(case, dict) or not isinstance(cast("dict[str, Any]", case).get("answer"), str):
        raise ValueError('it is no object with an "answer"')
    found: dict[str, Any] = {"prompt": "", "observations": [], **cast("dict[str, Any]", case)}
    if not isinstance(found["prompt"], str):
        raise ValueError('its "prompt" is no text')
    observations = found["observations"]
    if not isinstance(observations, list) or not all(map(_is_observation, cast("list[Any]", observations))):
        raise ValueError('its "observations" are no list of objects with a "text"')
    return found


def _is_observation(each: Any) -> bool:
    return isinstance(each, dict) and isinstance(cast("dict[str, Any]", each).get("text"), str)


def _checked(case: dict[str, Any]) -> CheckedAnswer:
    evidence = Evidence()
    evidence.add_words(case["prompt"])
    observations: list[dict[str, Any]] = case["observations"]
    for number, each in enumerate(observations, 1):
        asked: Any = each.get("input")
        call = each.get("call")
        evidence.add(
            call if isinstance(call, str) else f"R{number}",
            each["text"],
            cast("str | dict[str, Any]", asked)
            if isinstance(asked, str | dict)
            else json.dumps(asked)
            if asked
            else "",
        )
    return check(case["answer"], evidence, case["prompt"])


def _print_verdicts(number: int, case: dict[str, Any], *, as_json: bool) -> Counter[str]:
    """Print the verdicts on one answer; return the number of figures by label."""
    checked = _checked(case)
    name = str(case.get("id") or number)
    if as_json:
        print_line(json.dumps({"id": case.get("id", number), **verdicts_json(checked)}))
    else:
        _summary(name, case["answer"], checked)
    return Counter(checked.counts)


def _summary(name: str, answer: str, checked: CheckedAnswer) -> None:
    counts = checked.counts
    total = sum(counts.values())
    parts = [
        f"{total} figure{'s' if total != 1 else ''}",
        *(f"{counts[label]} {label}" for label in LABELS if counts.get(label)),
    ]
    print_line(f"{name}: {' · '.join(parts)}")
    if checked.partly:
        print_line(f"  read in part only: {', '.join(checked.partly)}")
    for verdict in checked.verdicts:
        if verdict.label in DOUBTFUL:
            print_line(f"  {verdict.label}  {verdict.figure.text}   {_around(answer, verdict)}")


def _around(answer: str, verdict: Verdict) -> str:
    start, end = max(0, verdict.figure.start - AROUND), verdict.figure.end + AROUND
    words = " ".join(answer[start:end].split())
    return f"{'…' if start else ''}{words}{'…' if end < len(answer) else ''}"
