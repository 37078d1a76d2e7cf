"""How well figures are judged: verdicts compared with labels, and the bars that they must reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ba_tui.core.values import frozen
from ba_tui.features.figures.check import check
from ba_tui.features.figures.observed.evidence import Evidence
from ba_tui.features.figures.verdicts import verdicts_json

UNSCORED = frozenset({"optional", "debatable"})
"""Tags of figures about which people disagree."""
ACCIDENTAL = "coincidental"
SET_ASIDE = frozenset({ACCIDENTAL, "wrong_attribution"})
LABELS = ("sourced", "derived", "given", "unsourced", "not_a_figure")


@frozen
class Bar:
    """A measure with the value that it must reach."""

    name: str
    value: float
    limit: float
    most: bool = False

    @property
    def met(self) -> bool:
        """Whether the value is as good as the limit."""
        return self.value <= self.limit if self.most else self.value >= self.limit


@frozen
class Scored:
    """A labelled figure and the label that it got: ``none`` where nothing was found there."""

    case: str
    text: str
    label: str
    found: str
    tags: frozenset[str]
    clean: bool


def judged(cases: Iterable[Mapping[str, Any]]) -> list[Scored]:
    """Judge the answer of each case, and put each of its labels beside the verdict that overlaps it most."""
    found: list[Scored] = []
    for case in cases:
        evidence = Evidence()
        evidence.add_words(case["prompt"])
        for each in case["observations"]:
            evidence.add(each["call"], each["text"], each.get("input", ""))
        verdicts = verdicts_json(check(case["answer"], evidence, case["prompt"]))["figures"]
        for figure in case["figures"]:
            tags = frozenset(figure.get("tags", ()))
            label = _label_at(figure, verdicts)
            if not tags & UNSCORED:
                clean = "clean" in case.get("tags", ())
                found.append(Scored(case["id"], figure["text"], figure["label"], label, tags, clean))
    return found


def _label_at(figure: Mapping[str, Any], verdicts: Sequence[Mapping[str, Any]]) -> str:
    best, label = 0, "none"
    for verdict in verdicts:
        overlap = min(figure["end"], verdict["end"]) - max(figure["start"], verdict["start"])
        if overlap > best:
            best, label = overlap, verdict["label"]
    return label


def bars(scored: Sequence[Scored]) -> list[Bar]:
    """The measures of the specification. Accidental and wrongly attributed figures are left out of the first two."""
    plain = [each for each in scored if not any(tag.startswith(tuple(SET_ASIDE)) for tag in each.tags)]
    wrong = [each for each in plain if each.label == "unsourced"]
    told = [each for each in plain if each.found == "unsourced"]
    hits = sum(each.found == "unsourced" for each in wrong)
    accidents = [each for each in scored if each.label == "unsourced" and any(_accident(tag) for tag in each.tags)]
    clean = {each.case for each in scored if each.clean}
    alarms = sum(each.clean and each.found == "unsourced" != each.label for each in scored)
    apart = sum((each.label == "not_a_figure") == (each.found in {"not_a_figure", "none"}) for each in scored)
    return [
        Bar("unsourced figures found", _share(hits, len(wrong)), 0.95),
        Bar("of those called unsourced, right", _share(hits, len(told)), 0.90),
        Bar(
            "accidental ones found", _share(sum(each.found == "unsourced" for each in accidents), len(accidents)), 0.70
        ),
        Bar("false alarms per clean answer", alarms / len(clean) if clean else 0.0, 0.2, most=True),
        Bar("figure or not", _share(apart, len(scored)), 0.99),
    ]


def _accident(tag: str) -> bool:
    return tag.startswith(ACCIDENTAL)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def confusion(scored: Sequence[Scored]) -> str:
    """A Markdown table: how often each label got each verdict."""
    counts = Counter((each.label, each.found) for each in scored)
    found = (*LABELS, "unchecked", "none")
    rows = [f"| labelled \\ judged | {' | '.join(found)} |", "|---" * (len(found) + 1) + "|"]
    rows += [f"| {label} | {' | '.join(str(counts[label, each]) for each in found)} |" for label in LABELS]
    return "\n".join(rows)
