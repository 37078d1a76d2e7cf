"""A quick look at what compression keeps of labelled facts. ``python -m tests.eval.compression`` gives all figures."""

from __future__ import annotations

import pytest

from ba_tui.context.compression.strategies import extract
from ba_tui.core.messages import Text, user
from tests.context.conversations import answer, count, rounds
from tests.eval.compression.measure import WAYS, Score, folded, holds
from tests.eval.compression.shapes import SHAPES, conversation
from tests.eval.compression.stories import KINDS_OF_FACT, Story, stories
from tests.eval.compression.used import USED_KINDS, facts_used

LEAST = {0.5: 0.95, 0.25: 0.9, 0.1: 0.8}
USED_LEAST = {0.5: 0.88, 0.25: 0.75, 0.1: 0.65}
"""The same for facts that later steps use, in any shape of conversation."""


@pytest.fixture(scope="module")
def told() -> list[Story]:
    return list(stories(scale=0.3))


def test_stories_hold_the_facts_that_are_asked_for(told: list[Story]) -> None:
    assert len(told) >= 10
    for story in told:
        assert 60 <= len(story.messages) <= 300
        text = folded(story.messages)
        assert all(holds(text, label) for label in story.labels)
    assert {label.kind for story in told for label in story.labels} == set(KINDS_OF_FACT)


def test_rules_keep_more_than_plain_ways(told: list[Story]) -> None:
    for budget, least in LEAST.items():
        scores = {name: Score() for name in ("EXTRACT", "plain truncation", "first + last")}
        for name, score in scores.items():
            for story in told[::3]:
                score.add(story, WAYS[name], budget)
        kept = scores.pop("EXTRACT")
        assert kept.over == 0
        assert kept.share >= least
        assert kept.share > max(score.share for score in scores.values()) + 0.3


def test_of_an_answer_the_sentences_with_most_figures_stay() -> None:
    names = ["north", "south", "east", "west", "old", "new", "upper", "lower", "inner", "outer"] * 3
    said = [f"Pier {number} at the {name} quay took {number * 7 + 100} tons." for number, name in enumerate(names)]
    said[11] = "The piers took 8,412 tons in May, 7,903 in June, 9,377 in July."
    messages = [user("How much did we land?"), answer(Text("\n".join(["## Landings", *said]))), *rounds(8, result="ok")]
    kept = folded(extract(messages, count(messages[2:]) + 110, count).messages)
    assert said[11].casefold() in kept
    assert 0 < sum(line.casefold() in kept for line in said) < len(said) // 2
    assert "## landings" not in kept


@pytest.mark.parametrize("shape", SHAPES)
def test_of_what_later_steps_use_no_kind_keeps_less_than_by_truncation(shape: str) -> None:
    before = [story for seed in (7, 8) for story in facts_used(conversation(shape, seed, rounds=6), shape, (0.7,))]
    for budget, least in USED_LEAST.items():
        ours, theirs = Score(), Score()
        for story in before:
            ours.add(story, WAYS["EXTRACT"], budget)
            theirs.add(story, WAYS["plain truncation"], budget)
        assert ours.over == 0
        assert ours.share >= least
        worse = {kind: (ours.of(kind), theirs.of(kind)) for kind in USED_KINDS if ours.of(kind) < theirs.of(kind)}
        assert not worse, budget


def test_the_same_conversation_gives_the_same_bytes() -> None:
    messages = conversation("long logs", 3, rounds=3)
    made = [extract(messages, count(messages) // 5, count).messages for _ in range(2)]
    assert [message.blocks for message in made[0]] == [message.blocks for message in made[1]]
