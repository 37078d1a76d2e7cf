"""Runs cases through the data engine and counts which traps are found."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, cast

import duckdb

from ba_tui.core.ports.tables import TrapFinding
from ba_tui.features.data.analysis.engine_process.database import Limits
from ba_tui.features.data.analysis.engine_process.main import Handlers
from ba_tui.features.data.analysis.engine_process.traps.probes import CheckFailed, Prober
from ba_tui.features.data.analysis.errors import encoded
from ba_tui.processes.serving import HandlerFailed, WorkerChannel, WorkerRequest
from tests.eval.traps.cases import Case, Expected

RECALL, FALSE_PER_CLEAN = 0.90, 1 / 20
FAULTS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
MEGABYTES = 500_000_000


@dataclass
class Score:
    """What was expected and found, by kind, and what went wrong, one line each."""

    expected: Counter[str] = field(default_factory=Counter[str])
    found: Counter[str] = field(default_factory=Counter[str])
    false: Counter[str] = field(default_factory=Counter[str])
    false_in_clean: int = 0
    clean: int = 0
    cases: int = 0
    unproved: int = 0
    errors: list[str] = field(default_factory=list[str])

    @property
    def recall(self) -> float:
        return self.found.total() / self.expected.total() if self.expected else 1.0

    @property
    def false_per_clean(self) -> float:
        return self.false_in_clean / max(self.clean, 1)

    @property
    def passed(self) -> bool:
        return self.recall >= RECALL and self.false_per_clean <= FALSE_PER_CLEAN and not self.unproved

    def figures(self) -> dict[str, Any]:
        return {
            "cases": self.cases,
            "clean": self.clean,
            "expected": self.expected.total(),
            "found": self.found.total(),
            "recall": round(self.recall, 4),
            "false_in_clean": self.false_in_clean,
            "false_per_clean": round(self.false_per_clean, 4),
            "false": self.false.total(),
            "unproved": self.unproved,
            "passed": self.passed,
        }

    def note(self, case: Case, findings: Iterable[TrapFinding]) -> None:
        """Compare the findings of a case with its labels."""
        given = list(findings)
        self.cases += 1
        self.clean += case.clean
        for each in case.expected:
            self.expected[each.trap] += 1
            if any(_matches(each, finding) for finding in given):
                self.found[each.trap] += 1
            else:
                self.errors.append(f"missed  {each.trap:22} {case.id}: {each.dataset}.{each.column}")
        for finding in given:
            wanted = any(_matches(each, finding) for each in case.expected)
            if not wanted and finding.trap not in case.tolerated:
                self.false[finding.trap] += 1
                self.false_in_clean += case.clean
                where = "false   " if case.clean else "beside  "
                self.errors.append(f"{where}{finding.trap:22} {case.id}: {finding.message}")


def _matches(expected: Expected, finding: TrapFinding) -> bool:
    return expected.trap == finding.trap and expected.dataset in {"", finding.dataset}


def measured(cases: Iterable[Case]) -> Score:
    """Run the cases, each with an engine of its own in this process. A check whose query or code fails is an error of
    its case."""
    score, before = Score(), Prober.strict
    Prober.strict = True
    try:
        for case in cases:
            with tempfile.TemporaryDirectory() as folder:
                _run(case, Path(folder), score)
    finally:
        Prober.strict = before
    return score


class _Unheard:
    """Stands for the connection to a client."""

    def send(self, *_: object) -> None:
        """Nobody listens."""


def _run(case: Case, folder: Path, score: Score) -> None:
    findings: list[TrapFinding] = []
    state = folder / "state"
    state.mkdir()
    handlers = Handlers(state, Limits(MEGABYTES, 2, MEGABYTES, 100_000))

    def ask(method: str, **payload: Any) -> Any:
        request = WorkerRequest(cast("WorkerChannel", _Unheard()), 1, method, payload)
        return encoded(getattr(handlers, method)(request, **payload))

    try:
        for path in _files(case, folder):
            for dataset in ask("register", source=path.name, paths=[str(path)], part="", name=""):
                findings += _found(ask("profile", name=dataset["name"], thorough=False))
        if case.sql:
            findings += _found(ask("query", sql=case.sql, head=1, named={}))
        for each in findings:
            if not ask("query", sql=each.proof, head=1, named={})["rows"]:
                score.unproved += 1
                score.errors.append(f"unproved {each.trap} {case.id}: {each.proof}")
    except (CheckFailed, HandlerFailed, duckdb.Error, *FAULTS) as error:
        score.unproved += 1
        score.errors.append(f"failed  {case.id}: {error}")
    finally:
        handlers.close()
    score.note(case, findings)


def _found(reply: Any) -> list[TrapFinding]:
    return [TrapFinding(**each) for each in reply["findings"]]


def _files(case: Case, folder: Path) -> list[Path]:
    """The files of a case as they were on its day; those with given types are Parquet."""
    paths: list[Path] = []
    for path in case.write(folder):
        if types := case.types.get(path.stem):
            target = path.with_suffix(".parquet")
            duckdb.execute(f"COPY (FROM read_csv(?, types = {types})) TO '{target}'", [str(path)])
            path = target
        if case.today:
            _dated(path, case.today)
        paths.append(path)
    return paths


def _dated(path: Path, day: date) -> None:
    """The file was written on ``day``: what the checks take for the present."""
    seconds = datetime.combine(day, time(12), UTC).timestamp()
    os.utime(path, (seconds, seconds))


def report(score: Score, errors: int, *, kinds: bool) -> str:
    """The score as text, with the first ``errors`` that were made."""
    lines = [f"{'kind':24}{'expected':>9}{'found':>7}{'false':>7}"] if kinds else []
    names = sorted({*score.expected, *score.false}) if kinds else []
    lines += [f"{name:24}{score.expected[name]:9}{score.found[name]:7}{score.false[name]:7}" for name in names]
    lines += [
        f"{score.cases} cases, {score.clean} clean",
        f"recall {score.recall:.1%} ({score.found.total()} of {score.expected.total()}; at least {RECALL:.0%})",
        f"false warnings in clean cases {score.false_in_clean}: {score.false_per_clean:.3f} a case "
        f"(at most {FALSE_PER_CLEAN:.2f}); beside expected ones {score.false.total() - score.false_in_clean}",
        f"without proof {score.unproved}",
        "passed" if score.passed else "NOT passed",
    ]
    return "\n".join([*lines, *sorted(score.errors)[:errors]])
