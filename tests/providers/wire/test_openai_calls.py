"""The pieces of calls as servers send them: mixed, without ids, under one index; whole again or not run at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.core.events import ToolInputDelta
from ba_tui.core.messages import Message
from ba_tui.providers import openai_compat
from ba_tui.providers.faults import ModelService
from tests.providers.conftest import GPT, call, delta

SERVICE = ModelService("Test", "KEY", "http://127.0.0.1", "m")


def answer(events: list[Any]) -> tuple[Message, list[Any]]:
    assembly = openai_compat.OpenAIReply(GPT, SERVICE)
    shown = [chunk for event in events for chunk in assembly.feed("", json.loads(json.dumps(event)))]
    return assembly.finish(), shown


A, B = ("read_file", {"path": "a"}), ("now", {"zone": "UTC"})
PIECES: list[tuple[str, list[Any], list[tuple[str, dict[str, Any]]]]] = [
    (
        "one index for all, the later pieces without an id",
        [
            delta(tool_calls=[call("", "read_file", id="1", index=0)]),
            delta(tool_calls=[call('{"path": "a"}', index=0)]),
            delta(tool_calls=[call("", "now", id="2", index=0)]),
            delta(tool_calls=[call('{"zone":', index=0)]),
            delta(tool_calls=[call(' "UTC"}', index=0)]),
        ],
        [A, B],
    ),
    (
        "one index for all and no ids",
        [
            delta(tool_calls=[call('{"path": "a"}', "read_file", index=0)]),
            delta(tool_calls=[call('{"zone": "UTC"}', "now", index=0)]),
        ],
        [A, B],
    ),
    (
        "the same call twice, one index for both",
        [
            delta(tool_calls=[call('{"path": "a"}', "read_file", index=0)]),
            delta(tool_calls=[call('{"path": "a"}', "read_file", index=0)]),
        ],
        [A, A],
    ),
    (
        "gaps and another order",
        [
            delta(tool_calls=[call('{"path"', "read_file", id="1", index=7)]),
            delta(tool_calls=[call('{"zone": "UTC"}', "now", id="2", index=3)]),
            delta(tool_calls=[call(': "a"}', index=7)]),
        ],
        [A, B],
    ),
    (
        "an index in words",
        [
            delta(tool_calls=[call("", "read_file", id="1", index="0"), call("", "now", id="2", index="1")]),
            delta(tool_calls=[call('{"path": "a"}', index="0"), call('{"zone": "UTC"}', index="1")]),
        ],
        [A, B],
    ),
    (
        "no index, the ids with each piece",
        [
            delta(tool_calls=[call('{"path"', "read_file", id="1"), call('{"zone"', "now", id="2")]),
            delta(tool_calls=[call(': "a"}', id="1"), call(': "UTC"}', id="2")]),
        ],
        [A, B],
    ),
    (
        "another id with each piece",
        [
            delta(tool_calls=[call('{"path"', "read_file", id="1", index=0)]),
            delta(tool_calls=[call(': "a"}', id="x", index=0)]),
        ],
        [A],
    ),
    (
        "ids that are numbers, names that are null",
        [
            delta(tool_calls=[{"index": 0, "id": 0, "function": {"name": "now", "arguments": '{"zone":'}}]),
            delta(tool_calls=[{"index": 0, "id": 0, "function": {"name": None, "arguments": '"UTC"}'}}]),
        ],
        [B],
    ),
    ("without a function of its own", [delta(tool_calls=[{"name": "now", "arguments": {"zone": "UTC"}}])], [B]),
    (
        "no arguments in words",
        [delta(tool_calls=[call("null", "now", id="1", index=0), call([], "now", id="2", index=1)])],
        [("now", {}), ("now", {})],
    ),
    (
        "whole in the message of the last chunk",
        [{"choices": [{"message": {"tool_calls": [call('{"zone": "UTC"}', "now", id="1")]}, "delta": {}}]}],
        [B],
    ),
    (
        "a name in pieces",
        [
            delta(tool_calls=[call("", "read", id="1", index=0)]),
            delta(tool_calls=[call(None, "_file", index=0)]),
            delta(tool_calls=[call('{"path": "a"}', index=0)]),
        ],
        [A],
    ),
    (
        "a name that grows",
        [
            delta(tool_calls=[call("", "read", id="1", index=0)]),
            delta(tool_calls=[call('{"path": "a"}', "read_file", id="1", index=0)]),
        ],
        [A],
    ),
    (
        "no index, another id with each piece",
        [
            delta(tool_calls=[call('{"path"', "read_file", id="1")]),
            delta(tool_calls=[call(': "a"}', id="x")]),
            delta(tool_calls=[call('{"zone": "UTC"}', "now", id="y")]),
        ],
        [A, B],
    ),
    (
        "an empty object before the arguments",
        [
            delta(tool_calls=[call("{}", "now", id="1", index=0)]),
            delta(tool_calls=[call('{"zone":', index=0)]),
            delta(tool_calls=[call(' "UTC"}', index=0)]),
        ],
        [B],
    ),
    (
        "said again at the end by its index",
        [
            delta(tool_calls=[call('{"zone": "UTC"}', "now", id="1", index=0)]),
            delta(tool_calls=[call("", "now", id="1", index=0)]),
        ],
        [B],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("pieces", "expected"), [case[1:] for case in PIECES], ids=[case[0] for case in PIECES])
def test_calls_as_servers_send_them(pieces: list[Any], expected: list[tuple[str, dict[str, Any]]]) -> None:
    message, shown = answer([*pieces, delta("tool_calls")])
    assert [(use.name, use.input) for use in message.calls] == expected
    assert all(use.malformed is None for use in message.calls)
    assert {chunk.call_id for chunk in shown if isinstance(chunk, ToolInputDelta)} == {use.id for use in message.calls}


GIVEN = st.lists(st.fixed_dictionaries({"k": st.text('ab{}"', max_size=6)}), min_size=1, max_size=3)


@settings(max_examples=30, deadline=None)
@given(inputs=GIVEN, draws=st.data(), indexed=st.booleans(), ids=st.sampled_from(["first", "each"]))
def test_calls_in_any_pieces_are_whole_again(
    inputs: list[dict[str, str]], draws: st.DataObject, indexed: bool, ids: str
) -> None:
    """By index they may be mixed; without one each is sent to its end."""
    queues: list[list[Any]] = []
    for at, each in enumerate(inputs):
        text = json.dumps(each)
        cut = draws.draw(st.integers(0, len(text)))
        where = {"index": at} if indexed else {}
        again = {"id": f"c{at}"} if ids == "each" else {}
        queues.append([call(text[:cut], f"tool{at}", id=f"c{at}", **where), call(text[cut:], **where, **again)])
    order = [at for at in range(len(inputs)) for _ in range(2)]
    if indexed:
        order = draws.draw(st.permutations(order))
    pieces = [delta(tool_calls=[queues[at].pop(0)]) for at in order]
    message, _ = answer([*pieces, delta("tool_calls")])
    assert {(use.id, use.name, json.dumps(use.input)) for use in message.calls} == {
        (f"c{at}", f"tool{at}", json.dumps(each)) for at, each in enumerate(inputs)
    }


@pytest.mark.parametrize(
    "pieces",
    [
        ['{"path": "a"', "", '{"zone": "UTC"}'],
        ['{"path": "a"}', "", '{"zone": "UTC"'],
        ['{"path": "a"} and more', "", "{}"],
        ['["a"]', "", '"words"'],
    ],
)
def test_what_does_not_close_is_never_run(pieces: list[str]) -> None:
    """However the pieces are told apart, no call is made up of another's arguments."""
    message, _ = answer(
        [
            delta(tool_calls=[call(pieces[0], "read_file", id="1", index=0)]),
            delta(tool_calls=[call(pieces[1], "now", id="2", index=0)]),
            delta(tool_calls=[call(pieces[2], index=0)]),
            delta("tool_calls"),
        ]
    )
    wanted = {"read_file": {"path": "a"}, "now": {"zone": "UTC"}}
    run = [use for use in message.calls if use.malformed is None]
    assert all(use.input in ({}, wanted[use.name]) for use in run)
    assert [use.name for use in message.calls] == ["read_file", "now"]


@pytest.mark.parametrize(
    "reason", ["length", "max_tokens", "MAX_TOKENS", "content_filter", "model_length", "sensitive"]
)
def test_a_call_that_was_cut_before_its_arguments_is_not_run(reason: str) -> None:
    message, _ = answer([delta(tool_calls=[call("", "now", id="1", index=0)]), delta(reason)])
    assert message.calls[0].malformed == ""
