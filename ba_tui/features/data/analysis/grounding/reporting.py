"""Verdicts as every face shows them, made of what the room figures found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from ba_tui.core.text.figures import YOU, FigureReport, FigureSource, FigureVerdict, SourceFile
from ba_tui.core.text.patterns import regex
from ba_tui.features.data.analysis.figures.verdicts import PERSON, Checked, Source, Verdict

MOST_SOURCES = 12
"""Operands of one derivation that are kept."""
LONGEST = 400
"""Characters of a derivation, and of a figure."""
LONGEST_LABEL = 80
_PERSON = regex(rf"\b{PERSON}\[")


def report_of(
    checked: Checked, calls: Mapping[str, str], files: Mapping[str, Sequence[SourceFile]] | None = None
) -> FigureReport:
    """The verdicts on one answer. ``calls``: ids by the names of sources, ``files``: what each result was read from."""
    files = files or {}
    known = list(dict.fromkeys(file for each in files.values() for file in each))
    verdicts = [_verdict(each, calls, files, known) for each in checked.verdicts]
    used = sorted({at for verdict in verdicts for at in verdict.files})
    partly = tuple(dict.fromkeys(name[:LONGEST_LABEL] for name in checked.partly))
    return FigureReport(tuple(verdicts), partly, checked.unread, tuple(known) if used else ())


def _verdict(
    verdict: Verdict,
    calls: Mapping[str, str],
    files: Mapping[str, Sequence[SourceFile]],
    known: Sequence[SourceFile],
) -> FigureVerdict:
    figure, derivation = verdict.figure, verdict.derivation
    found = derivation.operands if derivation else verdict.sources
    used = sorted({known.index(file) for name in verdict.calls for file in files.get(name, ())})
    return FigureVerdict(
        figure.text[:LONGEST],
        figure.start,
        figure.end,
        verdict.label,
        _number(figure.value),
        figure.unit.family if figure.unit else "",
        tuple([_source(source, calls) for source in found[:MOST_SOURCES]]),
        _PERSON.sub(f"{YOU}[", derivation.text)[:LONGEST] if derivation else "",
        verdict.note,
        tuple(used),
    )


def _source(source: Source, calls: Mapping[str, str]) -> FigureSource:
    if source.call == PERSON:
        return FigureSource(YOU, source.value, "", source.start, source.end, row=source.row[:LONGEST_LABEL])
    return FigureSource(
        source.call,
        source.value,
        calls.get(source.call, ""),
        source.start,
        source.end,
        source.column[:LONGEST_LABEL],
        source.row[:LONGEST_LABEL],
        source.line,
    )


def _number(value: Decimal) -> float | None:
    """A JSON number; None for one that no float can hold."""
    return float(value) if value.is_finite() and abs(value) <= Decimal("1e300") else None
