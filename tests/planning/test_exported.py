"""A finished turn exported as a workflow: the file is in order, and running it makes the same calls again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Event, MessageDone, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.messages import Message, ToolUse, user
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.results import ToolResult, failure
from ba_tui.features.plans.engine.flow_run import arguments
from ba_tui.features.plans.engine.templates import rendered
from ba_tui.features.plans.engine.workflows import Flow, Invocation
from ba_tui.sessions.exports.transcripts import exporter
from tests.planning.stage import parse_flow

Made = tuple[str, dict[str, Any]]
INFO = SessionInfo("20260101-000000-abcd", "Tidy the notes!", Path("/srv"), 1.0, 2.0)


def turn(
    prompt: str, *calls: tuple[str, dict[str, Any]], failed: Sequence[int] = (), ended: bool = True
) -> list[Event]:
    uses = [ToolUse(f"{prompt}-{number}", name, args) for number, (name, args) in enumerate(calls)]
    events: list[Event] = [TurnStarted(user(prompt)), MessageDone(Message("assistant", tuple(uses)))]
    for number, use in enumerate(uses):
        result = failure("not_found", "gone") if number in failed else ToolResult("ok")
        events += [ToolStarted(use, str(use.input.get("path", ""))), ToolFinished(use.id, result)]
    return [*events, TurnEnded("done")] if ended else events


def exported(events: Sequence[Event]) -> tuple[str, Flow]:
    text = "".join(exporter("workflow")(INFO, events))
    flow, problems = parse_flow(Path("x.yaml"), text)
    assert not problems, (text, list(map(str, problems)))
    assert flow
    return text, flow


def calls_of(flow: Flow, **params: Any) -> list[Made]:
    """What a run would call."""
    names, wrong = arguments(flow, params)
    assert not wrong
    return [
        (step.work.name, rendered(step.work.args, names)) for step in flow.steps if isinstance(step.work, Invocation)
    ]


CALLS = (
    ("read_file", {"path": "notes/a.md", "offset": 3}),
    ("edit_file", {"path": "notes/a.md", "old": "a {{ b }} ${x}\r\n", "new": "c\nd\n"}),
    ("shell", {"command": "wc notes/a.md"}),
    ("now", {}),
)


def test_the_calls_of_the_last_turn_with_calls_become_steps():
    events = [*turn("first", ("now", {})), *turn("Tidy notes/a.md", *CALLS, failed=[2]), *turn("thanks")]
    text, flow = exported(events)
    assert (flow.name, flow.description) == ("tidy_the_notes", "Tidy notes/a.md")
    assert calls_of(flow) == [CALLS[0], CALLS[1], CALLS[3]]
    assert "# From turn 2 of session 20260101-000000-abcd." in text
    assert "# Left out, because it did not succeed: shell" in text


def test_what_calls_share_is_a_parameter_wherever_it_stands():
    _, flow = exported(turn("Tidy it", *CALLS))
    assert flow.takes == {"path": {"type": "string", "default": "notes/a.md"}}
    changed = calls_of(flow, path="b.md")
    assert [args.get("path", args.get("command")) for _, args in changed] == ["b.md", "b.md", "wc b.md", None]
    assert changed[1][1]["old"] == "a {{ b }} ${x}\r\n"


def test_a_secret_becomes_a_parameter_without_a_value():
    secret = "sk-abcdefghijklmnopqrstuvwxyz0123"
    text, flow = exported(turn("Log in", ("web_fetch", {"url": "http://x", "token": secret})))
    assert secret not in text
    assert flow.parameters["required"] == ["token"]
    assert calls_of(flow, token="t") == [("web_fetch", {"url": "http://x", "token": "t"})]


@pytest.mark.parametrize(
    "events", [[], turn("hi"), turn("hi", ("now", {}), ended=False), turn("x", ("a", {}), failed=[0])]
)
def test_without_such_a_turn_it_says_so(events: list[Event]):
    with pytest.raises(UsageError, match="No finished turn of this session called tools"):
        exporter("workflow")(INFO, events)


texts = st.text(alphabet=st.sampled_from("ab{}%#'\"\\\r\n\t :-.é\u2028\u202e\x85\x1b\ufeff😀"), max_size=12)
arguments_of_a_call = st.dictionaries(
    st.sampled_from(["path", "text", "steps", "a-b", "x y"]),
    texts | st.lists(texts, max_size=2) | st.integers() | st.none(),
)


@given(texts, st.lists(arguments_of_a_call, min_size=1, max_size=4))
def test_any_arguments_come_back_as_they_were(prompt: str, calls: list[dict[str, Any]]):
    given_calls = [("tool", args) for args in calls]
    text, flow = exported(turn(prompt, *given_calls))
    assert calls_of(flow) == given_calls
    assert not set(text) & set("\r\x1b\x85\u202e")
