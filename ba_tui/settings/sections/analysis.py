"""The data engine: what it may use, and what of data a model may see."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le

from ba_tui.core.ports.traps import ALL, KINDS
from ba_tui.core.values import frozen
from ba_tui.settings.fields import Amount, FieldCheck, Setter, Whole, about, off_as_word
from ba_tui.settings.sections.group import SettingsGroup


def known_trap(value: str) -> str:
    """Return the name of a kind of traps. Raises ValueError."""
    if value not in KINDS and value != ALL:
        raise ValueError(f"expected a kind of traps, such as {', '.join(list(KINDS)[:3])}, or {ALL}")
    return value


TrapName = Annotated[str, FieldCheck(known_trap)]


@frozen
class AnalysisSettings(SettingsGroup):
    """Datasets and queries."""

    share: Literal["schema", "aggregates", "sample"] = field(
        default="sample",
        metadata=about(
            "What a model sees of a file before it queries it: schema (names and types), aggregates (also statistics) "
            "or sample (also some values).",
            Setter(stricter=("schema",)),
        ),
    )
    unmasked: tuple[str, ...] = field(
        default=(),
        metadata=about(
            "Columns as TABLE.COLUMN whose values a model may see although they look personal; /unmask adds one."
        ),
    )
    verify: Annotated[Literal["off", "show", "ask", "fix"], FieldCheck(off_as_word, first=True)] = field(
        default="show",
        metadata=about(
            "What is done about the figures of an answer: off (nothing), show (where each comes from), ask (also "
            "whether the model should check unsourced ones) or fix (it does so once).",
            "project",
        ),
    )
    memory_gb: Annotated[Amount, Ge(0), Le(1_000)] = field(
        default=0, metadata=about("Memory for queries in GB; 0 takes a quarter of the machine's, at most 4.", "project")
    )
    threads: Annotated[Whole, Ge(0), Le(256)] = field(
        default=0, metadata=about("Threads of the data engine; 0 uses all processors.", "project")
    )
    disk_gb: Annotated[Amount, Gt(0), Le(10_000)] = field(
        default=20, metadata=about("Most intermediate data that one query may keep on disk, in GB.", "project")
    )
    max_rows: Annotated[Whole, Ge(1), Le(1_000_000_000)] = field(
        default=10_000_000, metadata=about("Most rows of one query result.", "project")
    )
    python_memory_gb: Annotated[Amount, Ge(0), Le(1_000)] = field(
        default=0,
        metadata=about("Memory for Python sessions in GB; 0 takes a quarter of the machine's, at most 4.", "project"),
    )
    python_seconds: Annotated[Amount, Gt(0), Le(600)] = field(
        default=120,
        metadata=about("Seconds after which Python code is interrupted, unless the call says how many.", "project"),
    )
    query_seconds: Annotated[Amount, Gt(0), Le(86_400)] = field(
        default=300, metadata=about("Seconds after which a query is stopped.", "project")
    )
    fiscal_year_start: Annotated[Whole, Ge(1), Le(12)] = field(
        default=1, metadata=about("Month in which a fiscal year begins, for calendars.", "project")
    )
    mute_traps: tuple[TrapName, ...] = field(
        default=(), metadata=about("Kinds of traps that are not reported, or all (see `ba guide traps`).", "project")
    )
