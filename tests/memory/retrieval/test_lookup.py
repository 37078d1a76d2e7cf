"""Queries of the full-text index."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ba_tui.core.ports.memory import Entry
from ba_tui.features.memory.engine import lookup as lookup_module
from ba_tui.features.memory.engine.lookup import Nearby, merged
from tests.memory.retrieval.shelves import facts, lookup_of, turns


def test_terms_are_counted_and_matched_best_first(tmp_path: Path):
    lookup = lookup_of(tmp_path, facts("red guitar", "red red guitar strings", "blue drum", "a kite"))
    assert lookup.total() == 4
    assert lookup.counts(["red", "drum", "harp"]) == {"red": 2, "drum": 1}
    assert lookup.words(["string"]) == {"string": "strings"}
    assert lookup.matching(["drum", "red"], 10)[0] == 3
    assert len(lookup.matching(["red", "drum"], 2)) == 2
    assert lookup.matching(["harp"], 10) == lookup.matching([], 10) == []


def test_common_terms_are_left_out_when_a_rarer_one_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lookup_module, "POSTINGS", 3)
    lookup = lookup_of(tmp_path, facts("common rare", "common", "common", "common"))
    assert lookup.matching(["common", "rare"], 10) == [1]
    assert len(lookup.matching(["common"], 10)) == 4


def test_a_term_with_syntax_of_the_query_language_is_matched_as_text(tmp_path: Path):
    lookup = lookup_of(tmp_path, facts("AND OR NOT near"))
    assert lookup.matching(["near"], 5) == [1]


def test_turns_have_neighbours_in_their_session_only(tmp_path: Path):
    one, two = turns("a one", "b two", "c three"), [replace(each, id=f"u{each.id}") for each in turns("d", session="z")]
    lookup = lookup_of(tmp_path, [*one, *two, Entry("f", "a fact")])
    rows = lookup.rows([1, 2, 3, 4, 5])
    assert lookup.nearby(rows.values()) == {
        1: Nearby(next=2, second_next=3),
        2: Nearby(previous=1, next=3),
        3: Nearby(previous=2, second_previous=1),
        4: Nearby(),
    }


def test_turns_that_share_a_place_keep_the_order_of_the_log(tmp_path: Path):
    same = [replace(each, sequence=0) for each in turns("a one", "b two", "c three")]
    lookup = lookup_of(tmp_path, same)
    assert lookup.nearby(lookup.rows([2]).values()) == {2: Nearby(previous=1, next=3)}


def test_the_newest_come_first_without_superseded_ones(tmp_path: Path):
    old, new = Entry("old", "Port 80", "fact", "app", "port"), Entry("new", "Port 81", "fact", "app", "port")
    lookup = lookup_of(tmp_path, [old, Entry("pin", "Tea", pinned=True), replace(new, supersedes="old")])
    assert [entry.id for entry in lookup.recent(5)] == ["new", "pin"]
    assert [entry.id for entry in lookup.pinned()] == ["pin"]
    assert [entry.id for entry in lookup.in_slot(new)] == ["new"]
    assert [entry.id for entry in lookup.printed("tea!")] == ["pin"]
    assert lookup.entries(["old"])["old"].superseded_by == "new"


def test_odd_texts_are_stored_and_counted(tmp_path: Path):
    lookup = lookup_of(tmp_path, facts("nul \0 byte", "สวัสดี", "안녕 세상", "x" * 100_000, "?"))
    assert lookup.total() == 5
    assert [row.id for row in lookup.rows(lookup.matching(["안녕"], 5)).values()] == ["f2"]


def test_counts_of_several_stores_add_up():
    assert merged([{"a": 1, "b": 2}, {"b": 3}]) == {"a": 1, "b": 5}
