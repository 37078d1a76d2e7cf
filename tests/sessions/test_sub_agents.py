"""Sub-agents in exports: a folded section each, in the order in which they ended, whatever came in between."""

from __future__ import annotations

import json
from pathlib import Path

from ba_tui.core.events import Event, MessageDone, TurnEnded
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.sessions.exports.transcripts import exporter
from tests.faces.tui.agents.story import begins, ends, said, starts, works

INFO = SessionInfo("20261121-120000-ab12", "Agents", Path("/srv/project"), 0.0, 60.0, 1, 1.0, "test/model")
A, B, NESTED = "main/explore-1", "main/explore-2", "main/explore-1/general-1"
EVENTS: list[Event] = [
    *begins("1", "2"), *starts(A, "1"), *starts(B, "2"), *works(A), *works(B), *starts(NESTED, "x"), *works(NESTED),
    *ends(B, "2"), *ends(NESTED), *ends(A, "1"), MessageDone(said("Both have reported.")), TurnEnded("done", at=40.0),
]  # fmt: skip


def export(format: str, events: list[Event] = EVENTS) -> str:
    return "".join(exporter(format)(INFO, events))


def test_markdown_folds_each_agent_with_its_own_agents_inside():
    text = export("md")
    first, second = text.index("explore-2: Look at"), text.index("explore-1: Look at")
    inner = text.index("general-1")
    assert first < second < inner < text.index("Both have reported.")
    assert text.count("<details>") == text.count("</details>") == 3
    assert "> CHILD main/explore-1\n" in text
    assert "That is **main/explore-1**." in text
    assert text.count("- **read_file** `a.txt`") == 3


def test_an_agent_without_an_end_is_told_as_interrupted():
    text = export("md", [*begins("1"), *starts(A, "1"), *works(A), TurnEnded("cancelled", at=20.0)])
    assert "explore-1: Look at main/explore-1 · 1 call · 9 s · interrupted" in text


def test_html_and_json_hold_them():
    page = export("html")
    assert page.count('<details class="sub"><summary><b>Agent</b> explore-') == 2
    assert page.count("<details") == page.count("</details>")
    agents = json.loads(export("json"))["agents"]
    assert [(each["agent"], each["type"], each["ending"]) for each in agents] == [
        (A, "explore", "done"),
        (B, "explore", "done"),
        (NESTED, "explore", "done"),
    ]
    assert agents[0]["call_id"] == "1"
    assert next(each["role"] for each in agents[0]["messages"]) == "user"


def test_a_workflow_is_made_of_the_calls_of_the_main_agent():
    assert "read_file" not in export("workflow")
