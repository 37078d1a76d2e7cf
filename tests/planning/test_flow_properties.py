"""Whatever the order that ``needs`` asks for: steps run after what they need, and are undone in reverse."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ba_tui.features.plans.engine.templates import InvalidTemplate, expression, rendered
from tests.planning.stage import Stage


@st.composite
def graphs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Steps in any order of the file, each needing some of those that come before it in a hidden order."""
    count = draw(st.integers(1, 8))
    steps: list[dict[str, Any]] = []
    for number in range(count):
        needs = draw(st.lists(st.sampled_from(range(number)), unique=True)) if number else []
        steps.append(
            {
                "id": f"s{number}",
                "tool": draw(st.sampled_from(["say", "look"])),
                "args": {"text": f"s{number}"},
                "needs": [f"s{other}" for other in needs],
                "undo": {"tool": "say", "args": {"text": f"not s{number}"}},
            }
        )
    return draw(st.permutations(steps))


@given(graphs(), st.data())
async def test_any_graph_runs_in_a_valid_order_and_is_undone_in_reverse(
    graph: list[dict[str, Any]], data: st.DataObject
):
    stage = Stage()
    broken = data.draw(st.sampled_from([None, *(step["id"] for step in graph if step["tool"] == "say")]))
    if broken:
        stage.failures[broken] = 1
    result = await stage.run("steps: " + json.dumps(graph))
    texts = [entry.partition(":")[2] for entry in stage.log]
    forward = [text for text in texts if not text.startswith("not ")]
    back = [text.removeprefix("not ") for text in texts if text.startswith("not ")]
    for step in graph:
        if step["id"] in forward:
            assert all(forward.index(other) < forward.index(step["id"]) for other in step["needs"])
            assert broken not in step["needs"]
    assert result.is_error is bool(broken)
    if broken:
        assert back == [text for text in reversed(forward) if text != broken]
        assert texts[len(forward) :] == [f"not {text}" for text in back]
    else:
        assert sorted(forward) == sorted(step["id"] for step in graph)
        assert back == []


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_a_lone_reference_keeps_its_value_and_type(value: Any):
    assert rendered({"a": ["{{ it }}"], "b": 1}, {"it": value}) == {"a": [value], "b": 1}
    assert type(rendered("{{- it -}}", {"it": value})) is type(value)


@given(st.text(alphabet="{}%#it |'\"()[].0-+*~\n", max_size=30))
def test_any_template_gives_a_json_value_or_says_why_not(text: str):
    for read in (lambda: rendered(text, {"it": [1, "a"]}), lambda: expression(text).value({"it": 3})):
        try:
            json.dumps(read(), allow_nan=False)
        except InvalidTemplate:
            continue
