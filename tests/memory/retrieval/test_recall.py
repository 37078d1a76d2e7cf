"""A search: by vectors, by words, or the newest entries; with its threshold, limits and duplicates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import StorageError
from ba_tui.core.ports.memory import Entry
from ba_tui.features.memory.engine.recall import Recall, RecallResult, SearchRequest, SearchShelf
from ba_tui.features.memory.engine.store_process.desk import Exact
from ba_tui.features.memory.engine.store_process.mind import Mind
from ba_tui.features.memory.engine.vectors import VectorFile
from tests.memory.retrieval.shelves import Letters, facts, lookup_of, turns

FACTS = facts(
    "The fiscal year starts on 1 July.",
    "Reports for the board show thousands of euros.",
    "Tests are run with nox.",
    "The user likes oolong tea.",
    "Deployments are frozen in December.",
)


def ids(found: RecallResult) -> list[str]:
    return [hit.entry.id for hit in found.hits]


@pytest.fixture
def by_words(tmp_path: Path) -> Recall:
    return Recall([SearchShelf(lookup_of(tmp_path, FACTS))])


class Damaged:
    """Vectors that cannot be read."""

    def nearest(self, vector: Any, limit: int) -> Mapping[str, float]:
        raise StorageError("The vectors are damaged.")

    def cosines(self, vector: Any, ids: Iterable[str]) -> Mapping[str, float]:
        raise StorageError("The vectors are damaged.")


def test_vectors_find_what_no_word_finds(tmp_path: Path):
    lookup, letters = lookup_of(tmp_path, FACTS), Letters()
    file, nearest = VectorFile(tmp_path / "vectors"), Exact(26)
    mind = Mind(letters, file)
    nearest.add([fact.id for fact in FACTS], mind.vectors([fact.text for fact in FACTS], file))
    found = Recall([SearchShelf(lookup, nearest)], mind).search(SearchRequest("looong teapot lover", explicit=True))
    assert found.step == "vectors"
    assert found.why == ""
    assert {hit.signals.cosine > 0 for hit in found.hits} == {True}


def test_a_broken_model_or_broken_vectors_step_down_to_words(tmp_path: Path):
    lookup, letters = lookup_of(tmp_path, FACTS), Letters()
    letters.broken = True
    broken = Recall([SearchShelf(lookup, Exact(26))], Mind(letters, VectorFile(tmp_path / "v"))).search(
        SearchRequest("fiscal year")
    )
    assert (ids(broken), broken.step) == (["f0"], "words")
    assert "wrong CPU" in broken.why
    damaged = Recall([SearchShelf(lookup, Damaged())], Mind(Letters(), VectorFile(tmp_path / "v"))).search(
        SearchRequest("fiscal year")
    )
    assert (ids(damaged), damaged.step, damaged.why) == (["f0"], "words", "The vectors are damaged.")


def test_a_damaged_index_raises_nothing_and_is_made_anew(tmp_path: Path):
    lookup = lookup_of(tmp_path, FACTS)
    lookup.index.ask(lambda db: db.execute("DROP TABLE found"))
    recall = Recall([SearchShelf(lookup)])
    assert recall.search(SearchRequest("fiscal year")).hits == ()
    lookup.index.update()
    assert ids(recall.search(SearchRequest("fiscal year"))) == ["f0"]


def test_without_any_table_nothing_is_found_and_nothing_raised(tmp_path: Path):
    lookup = lookup_of(tmp_path, FACTS)
    lookup.index.ask(lambda db: db.execute("DROP TABLE entries"))
    found = Recall([SearchShelf(lookup)]).search(SearchRequest("fiscal year", explicit=True))
    assert (found.hits, found.step) == ((), "recent")


def test_a_search_without_a_match_shows_the_newest(by_words: Recall):
    found = by_words.search(SearchRequest("zebra", limit=1, explicit=True))
    assert (ids(found), found.step) == (["f4"], "recent")


@pytest.mark.parametrize("text", ["", " \n", "\0", "\ud800", "สวัสดี", "안녕", '") OR *', "a" * 1_000_000])
def test_any_prompt_can_be_asked(by_words: Recall, text: str):
    assert by_words.search(SearchRequest(text)).hits == ()


def test_the_end_of_a_long_prompt_counts(by_words: Recall):
    assert ids(by_words.search(SearchRequest("x " * 500_000 + "When does the fiscal year start?"))) == ["f0"]


def test_an_empty_memory_has_nothing(tmp_path: Path):
    assert Recall([SearchShelf(lookup_of(tmp_path, []))]).search(SearchRequest("fiscal year", explicit=True)).hits == ()
    assert Recall([]).search(SearchRequest("fiscal year", explicit=True)).hits == ()


def test_unrelated_prompts_are_given_nothing(by_words: Recall):
    assert by_words.search(SearchRequest("rename the variable tmp in lexer.c")).hits == ()


def test_a_hit_says_why_it_was_found(by_words: Recall):
    hit = by_words.search(SearchRequest("When does the fiscal year start?")).hits[0]
    assert hit.score >= 1
    assert hit.why.startswith("words: ")
    assert "fiscal" in hit.why


def test_rewordings_follow_their_hit_as_twins(tmp_path: Path):
    texts = ("Tests are run with nox.", "With nox the tests are run", "Tests are run with tox.")
    found = Recall([SearchShelf(lookup_of(tmp_path, facts(*texts)))]).search(
        SearchRequest("Which tests are run with nox?", explicit=True)
    )
    assert [(hit.entry.id, hit.twins) for hit in found.hits] == [("f1", ("f0",)), ("f2", ())]


def test_many_duplicates_take_one_place(tmp_path: Path):
    same = facts(*["Tests are run with nox."] * 150, "Tests of the shop are run by hand.")
    found = Recall([SearchShelf(lookup_of(tmp_path, same))]).search(SearchRequest("How are tests run?", explicit=True))
    assert len(found.hits) == 2


def test_limits_kinds_tokens_and_known_entries_hold_hits_back(by_words: Recall):
    ask = SearchRequest("fiscal year, board reports in euros, tests with nox", limit=5, explicit=True)
    assert len(by_words.search(ask).hits) == 3
    assert len(by_words.search(replace(ask, limit=2)).hits) == 2
    assert by_words.search(replace(ask, limit=0)).hits == ()
    assert len(by_words.search(replace(ask, tokens=12)).hits) == 1
    assert "f0" not in ids(by_words.search(replace(ask, leave_out=frozenset({"f0"}))))
    assert by_words.search(replace(ask, kinds=frozenset({"turn"}))).hits == ()


def test_only_a_search_finds_superseded_entries(tmp_path: Path):
    old = Entry("old", "The port is 8080", "fact", "app", "port")
    lookup = lookup_of(tmp_path, [old, replace(old, id="new", text="The port is 9090", supersedes="old")])
    recall = Recall([SearchShelf(lookup)])
    assert ids(recall.search(SearchRequest("Which port is it?"))) == ["new"]
    assert set(ids(recall.search(SearchRequest("Which port is it?", explicit=True)))) == {"old", "new"}


def test_of_equals_the_newer_comes_first(tmp_path: Path):
    two = [Entry("older", "Lunch is at noon on the roof", at=1.0), Entry("newer", "Noon on the roof, lunch", at=2.0)]
    found = Recall([SearchShelf(lookup_of(tmp_path, two))]).search(SearchRequest("lunch noon roof", explicit=True))
    assert [(hit.entry.id, hit.twins) for hit in found.hits] in (
        [("newer", ("older",))],
        [("newer", ()), ("older", ())],
    )


def test_two_stores_are_searched_together(tmp_path: Path):
    project = SearchShelf(lookup_of(tmp_path / "project", facts("The fiscal year starts in July.")))
    shared = lookup_of(tmp_path / "global", [Entry("g", "The user likes the fiscal year in slides.")])
    assert set(ids(Recall([project, SearchShelf(shared)]).search(SearchRequest("fiscal year", explicit=True)))) == {
        "f0",
        "g",
    }


def test_an_answer_is_found_by_the_question_before_it(tmp_path: Path):
    said = turns("Nice weather.", "Which guitar would you never sell?", "The red one.", "Fair.", "Bye.", "Bye bye.")
    found = Recall([SearchShelf(lookup_of(tmp_path, said))]).search(
        SearchRequest("Which guitar would Devon never sell?", explicit=True)
    )
    assert set(ids(found)[:2]) == {"t1", "t2"}


def test_a_day_in_the_question_finds_what_was_said_then(tmp_path: Path):
    said = [
        Entry("a", "Dinner with the team", at=1683504000.0),
        Entry("b", "Dinner with the team lead", at=1680000000.0),
    ]
    found = Recall([SearchShelf(lookup_of(tmp_path, said))]).search(
        SearchRequest("Who was at dinner on 8 May 2023?", explicit=True, today=date(2024, 1, 1))
    )
    assert ids(found)[0] == "a"
