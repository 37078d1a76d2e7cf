"""What counts as a conflict, and what each strategy makes of it."""

from __future__ import annotations

import pytest

from ba_tui.core.teamwork import Claim, Conflict, Strategy
from ba_tui.features.teams.engine.conflicts import Claims, StatedFact, differ, settled

AUTHORITY = {"ann": 0.2, "ben": 0.9}


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ("100", "105", False),
        ("100", "106", True),
        ("100 EUR", "100 USD", True),
        ("100 EUR", "101", False),
        ("North", "north.", False),
        ("North", "South", True),
        ("0", "0", False),
        (True, "true", False),
    ],
)
def test_figures_may_be_a_little_apart(one: object, other: object, apart: bool) -> None:
    assert differ(one, other) is apart
    assert differ(other, one) is apart


@pytest.mark.parametrize(
    ("strategy", "value"),
    [("majority", 412), ("confidence", 390), ("authority", 390), ("verifier", 390), ("person", 390)],
)
def test_each_strategy_chooses(strategy: Strategy, value: int) -> None:
    claims = (Claim("ann", 412, 0.3), Claim("cleo", 413, 0.3), Claim("ben", 390, 0.95))
    ended = settled(Conflict("c1", "orders", claims), strategy, lambda name: AUTHORITY.get(name, 0.5), 0.05)
    assert ended.winner
    assert ended.winner.value in {value, value + 1}
    assert ended.strategy == strategy
    assert ended.reason


def test_a_verifier_contradicts_by_any_difference() -> None:
    claims = Claims("t", verifiers={"vera"})
    claims.state("ann", [StatedFact("orders", 412)])
    assert not claims.state("ben", [StatedFact("orders", 413)])
    (conflict,) = claims.state("vera", [StatedFact("orders", 411)])
    assert [each.member for each in conflict.claims] == ["ann", "ben", "vera"]


def test_what_was_settled_opens_again_only_for_something_new() -> None:
    claims = Claims("t")
    claims.state("ann", [StatedFact("orders", 412, 0.9)])
    (conflict,) = claims.state("ben", [StatedFact("orders", 390)])
    claims.settle(settled(conflict, "confidence", lambda name: 0.5, 0.05))
    assert [fact.value for fact in claims.facts] == [412]
    assert not claims.state("cleo", [StatedFact("orders", 391)])
    (again,) = claims.state("dora", [StatedFact("orders", 500)])
    assert again.id == conflict.id
    assert len(again.claims) == 4


def test_a_member_that_corrects_itself_is_no_conflict() -> None:
    claims = Claims("t")
    claims.state("ann", [StatedFact("orders", 412)])
    assert not claims.state("ann", [StatedFact("orders", 500)])
