"""The todo list: one item in progress, errors that name the item, one reminder and no nagging."""

from __future__ import annotations

import pytest

from ba_tui.core.events import MessageDone, ToolFinished, TurnStarted
from ba_tui.core.messages import Message, Text, ToolUse, user
from ba_tui.core.results import Todo, Todos
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.faces.tui.inspector.source import todo_rows
from ba_tui.tools.builtin.todos import UnfinishedTodos
from tests.tools.conftest import Harness

REPLY = Message("assistant", (Text("done"),), origin="assistant")


async def test_a_list_is_state_and_display_at_once(harness: Harness) -> None:
    items = [
        {"content": "read", "status": "completed"},
        {"content": "write", "status": "in_progress", "priority": "high"},
        {"content": "test", "status": "pending", "id": "t"},
    ]
    result = await harness.run("todo_write", items=items)
    expected = (
        Todo("1", "read", "completed"),
        Todo("2", "write", "in_progress", "high"),
        Todo("t", "test", "pending"),
    )
    assert result.display == Todos(expected)
    assert harness.branch.transcript.todos == expected
    assert result.summary == "1/3 done"
    read = await harness.run("todo_read")
    assert read.text == ("1 completed, 1 in progress, 1 pending:\n[x] 1. read\n[>] 2. write (high)\n[ ] t. test")


async def test_an_item_is_not_done_while_the_last_command_failed(harness: Harness) -> None:
    async def wrote(*statuses: str) -> str:
        items = [{"content": f"step {number}", "status": status} for number, status in enumerate(statuses)]
        return (await harness.run("todo_write", items=items)).summary

    async def ran(command: str) -> None:
        call = ToolUse(command, "shell", {"command": command})
        harness.branch.emit(MessageDone(Message("assistant", (call,), origin="assistant")))
        result = await harness.run("shell", command=command)
        harness.branch.emit(ToolFinished(command, result))

    harness.branch.emit(TurnStarted(user("go")))
    await ran("true")
    assert await wrote("completed", "in_progress") == "1/2 done"
    await ran("false | tail -5")
    assert await wrote("completed", "completed") == "1/2 done, 1 failed"
    assert "[!] 2. step 1" in (await harness.run("todo_read")).text
    assert [todo.done for todo in harness.branch.transcript.todos] == [True, False]
    assert "`false` exited 1" in harness.branch.transcript.todos[1].broken
    rows = todo_rows(Todos(harness.branch.transcript.todos))
    assert [row[0].gutter for row in rows] == ["[x] ", "[!] "]
    await ran("false || true")
    assert await wrote("completed", "completed") == "2/2 done"


async def test_ids_stay_with_their_words(harness: Harness) -> None:
    await harness.run(
        "todo_write", items=[{"content": "a", "status": "pending"}, {"content": "b", "status": "pending"}]
    )
    await harness.run(
        "todo_write", items=[{"content": "b", "status": "completed"}, {"content": "c", "status": "pending"}]
    )
    assert [(todo.id, todo.content) for todo in harness.branch.transcript.todos] == [("2", "b"), ("1", "c")]


@pytest.mark.parametrize(
    ("items", "said"),
    [
        (
            [{"content": "a", "status": "in_progress"}, {"content": "b", "status": "in_progress"}],
            "2 items are in_progress: 'a', 'b'",
        ),
        ([{"content": "  ", "status": "pending"}], "Item 1 has no content"),
        (
            [{"content": "a", "status": "pending", "id": "x"}, {"content": "b", "status": "pending", "id": "x"}],
            "same id",
        ),
        ([{"content": "a", "status": "started"}], "items[0].status: expected one of pending, in_progress, completed"),
        ([{"status": "pending"}], "items[0] lacks 'content'"),
    ],
)
async def test_errors_name_the_item_and_change_nothing(
    harness: Harness, items: list[dict[str, str]], said: str
) -> None:
    await harness.run("todo_write", items=[{"content": "kept", "status": "pending"}])
    result = await harness.run("todo_write", items=items)
    assert said in result.text
    assert [todo.content for todo in harness.branch.transcript.todos] == ["kept"]


async def test_an_empty_list(harness: Harness) -> None:
    assert not (await harness.run("todo_write", items=[])).is_error
    assert (await harness.run("todo_read")).text == "The list is empty."


async def test_open_items_are_noticed_once_in_a_turn(harness: Harness) -> None:
    reminding = UnfinishedTodos()
    await reminding.after(REPLY, harness.branch)
    assert not harness.branch.drain(), "nothing is open"
    await harness.run("todo_write", items=[{"content": "left over", "status": "pending"}])
    await reminding.after(REPLY, harness.branch)
    assert harness.branch.drain()
    note = harness.branch.transcript.messages[-1]
    assert note.hidden or "left over" in note.text
    await harness.run("todo_write", items=[{"content": "another", "status": "pending"}])
    await reminding.after(REPLY, harness.branch)
    assert not harness.branch.drain(), "once a turn is enough"


async def test_the_same_list_is_not_nagged_about_in_the_next_turn(harness: Harness) -> None:
    reminding = UnfinishedTodos()
    await harness.run("todo_write", items=[{"content": "left over", "status": "pending"}])
    await reminding.after(REPLY, harness.branch)
    later = Branch(Turn(), Transcript(events=harness.events))
    assert later.transcript.todos
    await reminding.after(REPLY, later)
    assert not later.drain()
