"""All checks of a dataset, run with its profile for a time that is bounded."""

from __future__ import annotations

from contextlib import suppress

import duckdb

from ba_tui.core.ports.tables import Dataset, Finding
from ba_tui.core.ports.traps import KINDS
from ba_tui.features.data.analysis.engine_process.traps.columns import MOST_ROWS, column_findings
from ba_tui.features.data.analysis.engine_process.traps.keys import key_findings
from ba_tui.features.data.analysis.engine_process.traps.probing import SAMPLE_ROWS, OutOfTime, Prober
from ba_tui.features.data.analysis.engine_process.traps.rows import row_findings
from ba_tui.features.data.analysis.engine_process.traps.series import series_findings
from ba_tui.processes.serving import WorkerRequest

SMALL_ROWS = 50_000
SMALL_SECONDS, LEAST_SECONDS = 4.0, 0.5
CAUSED = frozenset({"text_numbers", "duplicate_keys"})


def findings_of_dataset(
    cursor: duckdb.DuckDBPyConnection, request: WorkerRequest, dataset: Dataset, seconds: float
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Return the traps in a dataset, and a sentence where the time did not suffice to look for all. ``seconds``: how
    long the profile took, which the checks may take too."""
    allowed = max(SMALL_SECONDS if dataset.rows <= SMALL_ROWS else LEAST_SECONDS, seconds)
    probe = Prober(cursor, request, allowed)
    large = dataset.rows > MOST_ROWS
    notes = (f"Values of {dataset.name} were checked for traps in a sample of {SAMPLE_ROWS:,} rows.",) if large else ()
    found: dict[tuple[str, str], Finding] = {}
    try:
        for check in (column_findings, row_findings, key_findings, series_findings):
            # Data that a check did not expect must not cost the profile.
            with suppress(*Prober.forgiven()):
                for each in check(dataset, probe):
                    found.setdefault((each.trap, each.column), each)
    except OutOfTime:
        note = f"The checks of {dataset.name} for traps ended after {allowed:.1g} s; some were left out."
        return _causes(found), (*notes, note)
    return _causes(found), notes


def _causes(found: dict[tuple[str, str], Finding]) -> tuple[Finding, ...]:
    """The findings without those that a heading among the rows causes, the gravest first."""
    headed = any(trap == "header_footer_inside" for trap, _ in found)
    kept = [each for each in found.values() if not headed or each.trap not in CAUSED]
    return tuple(sorted(kept, key=lambda each: list(KINDS).index(each.trap)))
