"""Searching all of the transcript: where the words are, and which of those places comes next. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from ba_tui.faces.tui.transcript.records import Record, ToolRow, source


class TranscriptSearch:
    """One query over all records. Capitals in the query make it exact."""

    def __init__(self, query: str = "") -> None:
        self.query = query
        flags = re.IGNORECASE if query == query.lower() else re.NOFLAG
        self.pattern = re.compile(re.escape(query), flags) if query else None
        self.hits: list[int] = []
        """The place of the record of every hit, oldest first."""
        self.at = -1

    def over(self, records: Sequence[Record], near: int) -> None:
        """Look through ``records``; the current hit becomes the last one not below ``near``."""
        self.hits = []
        if self.pattern is None:
            return
        for place, record in enumerate(records):
            found = self.pattern.findall(_text(record))
            self.hits += [place] * len(found)
        self.at = max(0, bisect_right(self.hits, near) - 1) if self.hits else -1

    def step(self, by: int) -> None:
        """The next (1) or previous (-1) hit, round the ends."""
        if self.hits:
            self.at = (self.at + by) % len(self.hits)

    @property
    def current(self) -> tuple[int, int] | None:
        """The record's place and which of its hits it is, from 0."""
        if not 0 <= self.at < len(self.hits):
            return None
        place = self.hits[self.at]
        return place, self.at - bisect_left(self.hits, place)

    @property
    def tally(self) -> str:
        if not self.query:
            return ""
        return f"{self.at + 1}/{len(self.hits)}" if self.hits else "not found"


def _text(record: Record) -> str:
    if isinstance(record, ToolRow):
        return f"{record.name} {record.target}"
    return source(record)
