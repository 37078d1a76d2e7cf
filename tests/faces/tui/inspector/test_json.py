"""A JSON result as a tree: which texts are one, what it shows, and that no number changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from textual.widgets import Static

from ba_tui.core.results import CommandText, Prose, Source, Table
from ba_tui.faces.tui.inspector.json_values import JsonNode, JsonView, looks_like_json, parsed_json
from ba_tui.faces.tui.inspector.model import InspectorValue, Whole
from ba_tui.sessions.artifacts import Artifacts
from tests.faces.tui.inspector.test_pane import Room, seen, settle

ORDERS = {"name": "ba", "orders": [{"id": at, "sum": at * 1.5} for at in range(3)], "none": None, "ok": True}


def shown(text: str) -> list[str]:
    """The first lines of the tree of ``text``."""
    node = JsonNode("", parsed_json(text))
    return [node.label[0], *(f"{child.key}: {child.label[0]}" for child in node.children)]


def test_numbers_stay_as_they_were_written() -> None:
    text = '{"a": 1.10, "b": 1e400, "c": 12345678901234567890123, "d": -0.0, "e": "1.10"}'
    assert shown(text)[1:] == ["a: 1.10", "b: 1e400", "c: 12345678901234567890123", "d: -0.0", "e: 1.10"]


@pytest.mark.parametrize(
    "text", ["", "12", '"x"', "{oops", "[1/3] building [done]", '{"a": 1} trailing', "{}\nwords\n{}"]
)
def test_what_is_no_object_or_array_is_no_tree(text: str) -> None:
    assert parsed_json(text) is None


def test_lines_of_json_are_an_array_and_colours_do_no_harm() -> None:
    assert shown('{"a": 1}\n\n{"a": 2}\n') == ["[2 items]", "0: {1 key}", "1: {1 key}"]
    assert shown('\x1b[1;39m{\n  \x1b[0m\x1b[34m"a"\x1b[0m: \x1b[0;39m1\x1b[0m\n}\n') == ["{1 key}", "a: 1"]


def test_a_deep_value_is_no_crash() -> None:
    assert parsed_json("[" * 100_000 + "]" * 100_000) is None


def test_a_long_array_is_in_groups_that_hold_every_item() -> None:
    node = JsonNode("", list(range(25_050)))
    keys = [child.key for child in node.children]
    assert (keys[0], keys[-1], len(keys)) == ("0 … 9999", "20000 … 25049", 3)
    leaves: list[int] = []
    waiting = [node]
    while waiting:
        here = waiting.pop(0)
        assert len(here.children) <= 100
        waiting = [*here.children, *waiting]
        if not here.branches:
            leaves.append(here.value)
    assert leaves == list(range(25_050))


def test_a_log_line_with_brackets_does_not_look_like_json() -> None:
    assert looks_like_json('  {\n "a": 1}\n')
    assert looks_like_json('[{"a": 1}]')
    assert not looks_like_json("[12:00:01] [info] done]")
    assert not looks_like_json("{'a': 1}")


def wanted(display: object, text: str = "") -> InspectorValue:
    return InspectorValue("shell cat x.json", {"command": "cat x.json"}, display, text, "ok", 0.1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "inspected",
    [
        wanted(CommandText("cat x.json", output=json.dumps(ORDERS, indent=2), exit_code=0)),
        wanted(Prose(json.dumps(ORDERS))),
        wanted(Source("x.json", json.dumps(ORDERS))),
        wanted(None, json.dumps(ORDERS)),
    ],
    ids=["a command", "a page", "a file", "a tool of the user's own"],
)
async def test_a_json_result_opens_as_a_tree_and_v_shows_its_text(inspected: InspectorValue) -> None:
    async with Room(inspected).run_test(size=(80, 30)) as pilot:
        await settle(pilot)
        assert "orders: [3 items]" in seen(pilot.app)
        assert "sum: 1.5" in seen(pilot.app)
        assert "v text" in seen(pilot.app)
        await pilot.press("v")
        await settle(pilot)
        assert '"orders"' in seen(pilot.app)
        assert "v tree" in seen(pilot.app)
        await pilot.press("v")
        await settle(pilot)
        assert "orders: [3 items]" in seen(pilot.app)


async def test_branches_close_and_open_by_keys() -> None:
    async with Room(wanted(None, json.dumps(ORDERS))).run_test(size=(80, 30)) as pilot:
        await settle(pilot)
        await pilot.press("down", "down", "left")
        await settle(pilot)
        assert "sum: 1.5" not in seen(pilot.app)
        await pilot.press("right")
        await settle(pilot)
        assert "sum: 1.5" in seen(pilot.app)
        await pilot.press("enter")
        await settle(pilot)
        assert "sum: 1.5" not in seen(pilot.app)
        await pilot.press("end")
        tree = pilot.app.query_one(JsonView)
        assert tree.cursor_node
        assert str(tree.cursor_node.label) == "ok"
        await pilot.press("home")
        assert tree.cursor_node is tree.root


async def test_what_is_copied_is_the_text() -> None:
    text = '{"a":   1.10}'
    async with Room(wanted(None, text)).run_test(size=(80, 30)) as pilot:
        app = pilot.app
        assert isinstance(app, Room)
        await settle(pilot)
        await pilot.press("y")
        await settle(pilot)
        assert app.copied == [text]


async def test_a_stored_result_that_is_json_opens_as_a_tree_with_its_pages_behind(tmp_path: Path) -> None:
    stored = Artifacts(tmp_path)
    whole = Whole(stored, stored.store(json.dumps(list(range(5_000)))).ref)
    inspected = InspectorValue(
        "shell x", {}, CommandText("x", output="[0, 1 … 4999]", exit_code=0), "a part", "ok", whole=whole
    )
    async with Room(inspected).run_test(size=(80, 30)) as pilot:
        await settle(pilot)
        assert "[5,000 items]" in seen(pilot.app)
        assert "4900 … 4999" in "\n".join(str(node.label) for node in pilot.app.query_one(JsonView).root.children)
        assert "v whole text" in seen(pilot.app)
        await pilot.press("v")
        await settle(pilot)
        assert "[0, 1, 2" in seen(pilot.app)


async def test_hostile_keys_and_values_reach_no_terminal() -> None:
    text = json.dumps({"\x1b]0;x\x07key\n": "\x1b[31mred\x9b", "two": "a\nb"})
    async with Room(wanted(None, text)).run_test(size=(80, 30)) as pilot:
        await settle(pilot)
        assert "\x1b" not in seen(pilot.app)
        assert "red" in seen(pilot.app)


async def test_a_long_cell_is_whole_below_its_grid() -> None:
    words = "Leave it at the door, ring twice and wait for the neighbour to come down the stairs"
    async with Room(InspectorValue("Table", {}, Table(("n", "note"), (("1.50", words),)))).run_test(
        size=(80, 30)
    ) as pilot:
        await settle(pilot)
        assert words not in seen(pilot.app)
        await pilot.press("right")
        await settle(pilot)
        cell = pilot.app.query_one("#cell", Static)
        assert cell.display
        assert str(cell.render()) == f"note: {words}"
