"""What a session used and cost: by turn, by model, with summaries, and how full the window is after each event."""

from __future__ import annotations

import pytest

from ba_tui.core.events import (
    Compressed,
    Event,
    MessageDone,
    ModelChanged,
    PromptProgress,
    Rewound,
    SideRequest,
    Steered,
    Strategy,
    TextDelta,
    ToolFinished,
    TurnEnded,
    TurnStarted,
    event_from_json,
    event_to_json,
)
from ba_tui.core.ledger import Ledger, cached_share, rough
from ba_tui.core.messages import Message, Text, Usage, user
from ba_tui.core.results import ToolResult


def ledger(*events: Event) -> Ledger:
    found = Ledger()
    for event in events:
        found.apply(event)
    return found


def done(usage: Usage | None, cost: float | None, model: str = "a/one", agent: str = "main") -> MessageDone:
    return MessageDone(Message("assistant", (Text("x" * 400),), usage, model=model), cost, agent=agent)


def pressed(cost: float | None, strategy: Strategy = "summarize", usage: Usage | None = None) -> Compressed:
    return Compressed((), strategy, 9_000, 2_000, cost, "the goal", usage=usage)


STORY: tuple[Event, ...] = (
    TurnStarted(user("first")),
    done(Usage(100, 10, 900), 0.5),
    done(Usage(50, 5), 0.25, "a/small", "main/explore-1"),
    TurnEnded("done"),
    pressed(0.125),
    ModelChanged("b/two"),
    TurnStarted(user("second")),
    pressed(0.0625, usage=Usage(800, 40)),
    done(Usage(10, 1, 0, 90), 1.0, "b/two"),
    TurnEnded("done"),
)


def test_costs_by_turn_by_model_and_of_summaries() -> None:
    found = ledger(*STORY)
    assert found.session.cost == 0.5 + 0.25 + 0.125 + 0.0625 + 1.0
    assert [turn.account.cost for turn in found.turns] == [0.75, 1.0625]
    assert {model: (each.requests, each.cost) for model, each in found.models.items()} == {
        "a/one": (1, 0.5),
        "a/small": (1, 0.25),
        "b/two": (1, 1.0),
    }
    assert found.summaries == 0.1875
    assert found.session.usage == Usage(960, 56, 900, 90)
    assert (found.turns[1].account.usage, found.turns[1].account.requests) == (Usage(810, 41, 0, 90), 1)
    assert found.summed == Usage(800, 40)
    assert [turn.prompt for turn in found.turns] == ["first", "second"]
    assert [(each.strategy, each.before, each.after) for each in found.shortened] == [("summarize", 9_000, 2_000)] * 2


def test_a_journal_brings_the_same_totals_back() -> None:
    again = ledger(*(event_from_json(event_to_json(event)) for event in STORY))
    live = ledger(*STORY)
    assert (again.session, again.models, again.turns) == (live.session, live.models, live.turns)
    assert (again.filled, again.estimated) == (live.filled, live.estimated)


@pytest.mark.parametrize(
    "unpriced", [done(Usage(1, 1), None, "c/x"), pressed(None), pressed(None, "extract", Usage(9, 9))]
)
def test_one_unknown_price_makes_the_sums_unknown_that_hold_it(unpriced: Event) -> None:
    found = ledger(*STORY, TurnStarted(user("third")), unpriced)
    assert found.session.cost is None
    assert found.turn.cost is None
    assert found.turns[0].account.cost == 0.75
    assert found.models["a/one"].cost == 0.5


def test_rules_compress_for_nothing() -> None:
    assert ledger(*STORY, pressed(None, "extract")).session.cost == ledger(*STORY).session.cost


def test_an_answer_that_broke_off_is_told_apart() -> None:
    found = ledger(*STORY, done(None, None))
    assert found.uncounted == 1
    assert found.session.cost == ledger(*STORY).session.cost


def test_the_window_is_what_the_vendor_counted_and_an_estimate_of_what_came_since() -> None:
    found = ledger(TurnStarted(user("x" * 4_000)))
    assert found.filled == 0
    for event, filled, estimated in (
        (done(Usage(100, 10, 900), 0.5), 1_010, False),
        (done(Usage(50, 5), 0.25, agent="main/explore-1"), 1_010, False),
        (ToolFinished("1", ToolResult("y" * 400)), 1_110, True),
        (Steered(user("数" * 15)), 1_120, True),
        (done(Usage(1_500, 20), 0.5), 1_520, False),
        (TextDelta("…"), 1_520, False),
        (ModelChanged("b/two"), 1_520, True),
        (pressed(0.1), 2_000, True),
    ):
        found.apply(event)
        assert (found.filled, found.estimated) == (filled, estimated), event.type


def test_a_rewind_shows_what_the_window_held_then() -> None:
    answer = Message("assistant", (Text("a"),), Usage(700, 20), model="a/one")
    found = ledger(*STORY, Rewound((user("first"), answer, user("z" * 40)), turns=1))
    assert (found.filled, found.estimated) == (730, True)
    assert found.session.cost == ledger(*STORY).session.cost
    found.apply(Rewound((), turns=0))
    assert found.filled == 0


def test_what_is_not_about_the_meters_changes_nothing() -> None:
    assert not Ledger().apply(TextDelta("a"))


def test_rough_sizes_and_the_share_of_the_cache() -> None:
    assert (rough(""), rough("a" * 40), rough("数据" * 3)) == (0, 10, 4)
    assert cached_share(Usage(100, 5, 300)) == 0.75
    assert cached_share(Usage()) is None


def test_requests_beside_the_conversation_are_paid_for() -> None:
    found = ledger(TurnStarted(user("go")), SideRequest("hook", "small", Usage(10, 5), 0.25), TurnEnded("done"))
    assert (found.session.cost, found.turn.cost, found.models["small"].requests, found.filled) == (0.25, 0.25, 1, 0)
    assert ledger(SideRequest("hook", "small", Usage(1, 1))).session.cost is None


def test_before_the_first_count_the_window_is_as_full_as_was_estimated() -> None:
    ledger = Ledger()
    ledger.apply(TurnStarted(user("hello")))
    assert not ledger.filled
    ledger.apply(PromptProgress(2_345))
    assert (ledger.filled, ledger.estimated) == (2_345, True)
    ledger.apply(MessageDone(Message("assistant", (Text("hi"),), Usage(2_000, 10), origin="assistant")))
    ledger.apply(PromptProgress(9_999, 500))
    assert (ledger.filled, ledger.estimated) == (2_010, False)
