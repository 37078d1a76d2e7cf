"""Plans in what a session is exported to: with the states that its steps had in the end, and without secrets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Event, Rewound, SubTaskChanged, TurnEnded, TurnStarted
from ba_tui.core.messages import user
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.plotting.plan_exports import plan_of
from ba_tui.sessions.exports.transcripts import exporter
from tests.faces.tui.plan.course import TRIP, course

INFO = SessionInfo("20260101-trip", "Trip", Path("/srv"), 0.0, 0.0, model="test/model")
KEY = "sk-ant-api03-" + "a1B2" * 20


def written(format: str, events: Sequence[Event]) -> str:
    return "".join(exporter(format)(INFO, events))


@pytest.fixture
def events() -> list[Event]:
    hotel = replace(TRIP.subtasks[1], status="failed", error=f"<b>full</b> {KEY}")
    return [
        TurnStarted(user("/plan trip")),
        *course("flights"),
        SubTaskChanged("plan-1", hotel),
        TurnEnded("done"),
    ]


def test_documents_show_a_plan_as_it_stood_in_the_end(events: list[Event]) -> None:
    text = written("md", events)
    assert "**Plan: Plan three days in Lisbon**\n\n```\nrunning, 1 of 7 steps done\n├─ ✓ Find flights" in text
    assert "├─ ✗ Find a hotel near the old town" in text
    page = written("html", events)
    assert "<summary><b>Plan: Plan three days in Lisbon</b></summary>" in page
    assert "hotel: &lt;b&gt;full&lt;/b&gt;" in page
    assert KEY not in text + page


def test_the_newest_plan_is_a_file_of_its_own(events: list[Event]) -> None:
    assert '    s1["✓ Find flights to Lisbon by explore"]:::completed' in written("mermaid", events)
    plan = plan_of(json.loads(written("plan-json", events)))
    assert [step.status for step in plan.subtasks][:3] == ["completed", "failed", "pending"]
    assert json.loads(written("json", events))["plans"][0]["id"] == "plan-1"
    assert KEY not in written("plan-json", events) + written("json", events)


def test_a_plan_that_was_taken_back_is_no_plan(events: list[Event]) -> None:
    for format in ("mermaid", "plan-json"):
        with pytest.raises(UsageError, match="has no plan"):
            written(format, [*events, Rewound(turns=0)])
    assert "Plan:" not in written("md", [*events, Rewound(turns=0)])
