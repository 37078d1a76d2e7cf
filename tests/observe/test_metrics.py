"""Figures about tools: a fold over events, the same live and replayed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ba_tui.core.events import Compressed, Event, MessageDone, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.messages import Message, Text, ToolUse, Usage, user
from ba_tui.core.results import ToolResult, failure
from ba_tui.observe.metrics import CallMetrics


def call(id: str, name: str, duration: float, result: ToolResult) -> list[Event]:
    return [ToolStarted(ToolUse(id, name, {})), ToolFinished(id, result, duration)]


def metrics(*events: Event) -> CallMetrics:
    found = CallMetrics()
    for event in events:
        found.apply(event)
    return found


def test_calls_durations_and_errors_are_counted_by_tool():
    retried = replace(ToolResult("ok"), meta={"retries": 2})
    found = metrics(
        TurnStarted(user("go")),
        *call("1", "grep", 0.1, ToolResult("x")),
        *call("2", "grep", 0.3, failure("timeout", "slow")),
        *call("3", "shell", 1.0, retried),
        TurnEnded("done"),
    )
    grep, shell = found.tools["grep"], found.tools["shell"]
    assert (grep.calls, grep.failures, dict(grep.kinds)) == (2, 1, {"timeout": 1})
    assert grep.average == pytest.approx(0.2)
    assert grep.success_rate == 0.5
    assert shell.retries == 2
    assert found.report()["turns"] == 1


def test_p95_is_what_most_calls_stay_under():
    events = [event for n in range(100) for event in call(str(n), "grep", n / 100, ToolResult("x"))]
    assert metrics(*events).tools["grep"].p95 == pytest.approx(0.94, abs=0.02)


def test_one_unknown_price_makes_the_cost_unknown():
    done = MessageDone(Message("assistant", (Text("x"),), Usage(1, 2, 3, 4)), 0.5)
    assert metrics(done, done).ledger.session.cost == 1.0
    report = metrics(done, replace(done, cost=None)).report()
    assert report["cost_usd"] is None
    assert report["usage"] == {"input": 2, "output": 4, "cache_read": 6, "cache_write": 8}


def test_models_and_compressions_are_in_the_report():
    done = MessageDone(Message("assistant", (Text("x"),), Usage(100, 2, 300), model="a/one"), 0.5)
    report = metrics(done, Compressed((), "summarize", 900, 300, 0.25)).report()
    usage = {"input": 100, "output": 2, "cache_read": 300, "cache_write": 0}
    assert report["models"] == {"a/one": {"requests": 1, "usage": usage, "cost_usd": 0.5}}
    assert (report["compressions"], report["summaries_cost_usd"], report["cost_usd"]) == (1, 0.25, 0.75)
    assert report["cached_share"] == 0.75


def test_a_result_without_a_start_is_left_out():
    assert metrics(ToolFinished("9", ToolResult("x"))).tools == {}
