"""How probable each operation is before numbers are compared: by the form of the figure and by the words beside it.

A hint in the clause makes its operation some forty times as probable as it was, one in the sentence eight times. The
figures are rounded from how answers are written; tests check that halving or doubling them changes little.
"""

from __future__ import annotations

from functools import lru_cache

from ba_tui.features.data.analysis.figures.answers.extract import Figure
from ba_tui.features.data.analysis.figures.weighed.scope import Scope
from ba_tui.features.data.analysis.figures.words.lexicon import listed
from ba_tui.features.data.analysis.figures.words.wording import hints

DOUBT = 0.12
"""How many figures of an answer come from nowhere."""
DOUBT_ELSEWHERE = 0.9
"""The same where the clause says that a figure is from outside; between the two where only the sentence does."""
DOUBT_BEFORE = 0.35
"""The same where the clause speaks of a previous year."""
NEAR, SENTENCE, BLOCK = 40.0, 8.0, 1.5
ALL = listed("all alle allen aller die der den les des las los todos todas of von de the 全部 这 这些 共 所有 各")
"""Before a small number: then it may count everything."""
FROM_TO = listed("from to von auf de à du au desde hasta a 从 由 至 到 auf between and zwischen und entre et y")
"""Before a figure that is one end of a change, or of a range."""

_BASE = {
    "percent": {
        "cell": 0.3,
        "pct": 0.3,
        "share": 0.25,
        "cagr": 0.02,
        "mean": 0.04,
        "sum": 0.01,
        "given": 0.03,
        "across": 0.05,
        "diff": 0.02,
    },
    "points": {"cell": 0.12, "diff": 0.8, "mean": 0.05, "given": 0.03},
    "times": {"cell": 0.1, "ratio": 0.85, "given": 0.02, "across": 0.03},
    "plain": {
        "cell": 0.6,
        "diff": 0.04,
        "sum": 0.05,
        "mean": 0.02,
        "ratio": 0.01,
        "across": 0.04,
        "count": 0.04,
        "above": 0.003,
        "given": 0.03,
        "span": 0.005,
        "median": 0.003,
        "rest": 0.0001,
        "per": 0.005,
        "steps": 0.002,
    },
}
_HINTED = {
    "percent": {
        "up": ("pct",),
        "down": ("pct",),
        "change": ("pct", "diff"),
        "share": ("share", "cell"),
        "mean": ("mean", "cell"),
        "cagr": ("cagr",),
        "sum": ("sum", "share"),
        "target": ("given",),
        "rest": ("share",),
        "median": ("cell",),
        "ratio": ("across", "share"),
    },
    "points": {"change": ("diff",), "target": ("given",)},
    "times": {"ratio": ("ratio",), "target": ("given",)},
    "plain": {
        "up": ("diff",),
        "down": ("diff",),
        "change": ("diff",),
        "sum": ("sum",),
        "mean": ("mean", "across"),
        "ratio": ("ratio",),
        "per": ("across", "per"),
        "rows": ("count",),
        "columns": ("count",),
        "target": ("given",),
        "peak": ("cell",),
        "median": ("median", "cell"),
        "rest": ("rest",),
        "cagr": ("span",),
    },
}
_BOOSTS = {"per": 0.5, "rows": 0.1, "columns": 0.3, "target": 0.5}
"""Hints that say less than others: the part of a boost that they have."""


def kind_of(figure: Figure) -> str:
    """``percent``, ``points``, ``times`` or ``plain``."""
    family = figure.unit.family if figure.unit else ""
    return family if family in {"percent", "points", "times"} else "plain"


def operations(figure: Figure, scope: Scope, before: str) -> dict[str, float]:
    """The probability of each operation. ``before``: the word before the figure."""
    near = scope.near.hints
    kind = kind_of(figure)
    if figure.sign and not scope.cell and kind == "percent":
        near = near | {"change"}
    counted = kind == "plain" and figure.unit is None and figure.step == 1 and abs(figure.value) < 1000
    sentence = scope.sentence.hints
    around = near | sentence
    above = counted and bool(around & {"mean", "median"}) and bool(around & {"up", "down"}) and abs(figure.value) < 100
    noun = counted and _counts_rows(figure.noun)
    all_of = counted and before in ALL
    moved = before in FROM_TO and not scope.cell
    return _weighed(kind, near, sentence, (scope.block.hints, scope.cell, above and not all_of, noun, all_of, moved))


def _counts_rows(noun: str) -> bool:
    return any(
        not rest and kind in {"rows", "columns"}
        for rest, kind in hints().get(noun[:1] if noun[:1] > "\u2fff" else noun, ())
    )


@lru_cache(maxsize=4096)
def _weighed(
    kind: str, near: frozenset[str], sentence: frozenset[str], rest: tuple[frozenset[str], bool, bool, bool, bool, bool]
) -> dict[str, float]:
    block, cell, above, noun, all_of, moved = rest
    if "spread" in near:
        # What these words name is not worked out here: only a cell may hold it.
        return {"cell": 0.9}
    weights = dict(_BASE[kind])
    hinted = _HINTED[kind]
    done: set[str] = set()
    for hints_, boost in ((near, NEAR), (sentence, SENTENCE), (block, BLOCK)):
        for hint in hints_:
            for operation in hinted.get(hint, ()):
                if operation not in done:
                    weights[operation] *= max(1.0, boost * _BOOSTS.get(hint, 1.0))
                    done.add(operation)
    if cell and not done:
        weights["cell"] *= 20
    if kind == "percent" and "cagr" in near:
        for operation in ("pct", "given", "share", "across"):
            weights[operation] *= 0.05
    if noun:
        weights["count"] *= 100
    if above:
        weights["above"] *= 3000
    if all_of:
        weights["count"] *= 10
    if moved:
        weights["cell"] *= 20
    whole = sum(weights.values())
    return {operation: weight / whole for operation, weight in weights.items()}


def direction(figure: Figure, scope: Scope) -> int:
    """1 when the figure is said to be a rise or a surplus, -1 for the opposite, 0 when nothing says so."""
    if figure.sign:
        return 1 if figure.sign == "+" else -1
    for names in (scope.near, scope.sentence):
        up, down = "up" in names.hints, "down" in names.hints
        if up != down:
            return 1 if up else -1
        if up:
            return 0
    return 0


def doubt(scope: Scope) -> float:
    """How probable it is that a figure comes from nowhere: more where words say that it comes from elsewhere."""
    if "elsewhere" in scope.near.hints:
        return DOUBT_ELSEWHERE
    if "elsewhere" in scope.sentence.hints:
        return 0.7
    return DOUBT_BEFORE if "before" in scope.near.hints else DOUBT
