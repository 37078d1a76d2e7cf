"""The tools todo_write and todo_read, and a reminder of unfinished todos.

The todo list is state of the session: results carry it, and the transcript folds it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakSet

from ba_tui.core.messages import Message, clean_text, reminder
from ba_tui.core.results import StateChange, Todo, Todos, ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.core.turn import Branch
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failures import ToolFailure

MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}
BROKEN = "[!]"
"""Marks an item that was completed after a failed command."""


def todo_write_tool(definition: Definition) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        transcript = call.branch.transcript
        items = _judged(todos_from(args["items"], transcript.todos), transcript.todos, transcript.broken_command)
        text = f"The list now has {_counts(items)}."
        if broken := next((item.broken for item in items if item.broken), ""):
            text += (
                f" Items count as failed because the last command failed: {broken} Run it until it succeeds and write "
                "the list again; where its failure was expected, end it with `|| true`."
            )
        return ToolResult(text, Todos(items), summary=_summary(items), changes=StateChange(todos=items))

    return definition.tool(run)


def todo_read_tool(definition: Definition) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        items = call.branch.transcript.todos
        if not items:
            return ToolResult("The list is empty.", Todos(()), summary="empty")
        return ToolResult(f"{_counts(items)}:\n{_listed(items)}", Todos(items), summary=_summary(items))

    return definition.tool(run)


def todos_from(given: Sequence[Mapping[str, Any]], before: Sequence[Todo]) -> tuple[Todo, ...]:
    """Return the new list. An item without an id keeps the id of an item with the same text, else gets the next number.

    Raises:
        ToolFailure: an item breaks a rule; the message names it.
    """
    known = {todo.content: todo.id for todo in before}
    taken = {str(item["id"]) for item in given if item.get("id")}
    items: list[Todo] = []
    for position, item in enumerate(given, 1):
        content = clean_text(str(item["content"])).strip()
        if not content:
            raise ToolFailure("validation_error", f"Item {position} has no content.", "Say what is to be done.")
        id = str(item.get("id") or "") or _free_id(known.get(content), taken)
        taken.add(id)
        if twin := next((todo for todo in items if todo.id == id), None):
            message = f"Items {twin.content!r} and {content!r} have the same id {id!r}."
            raise ToolFailure("validation_error", message, "Give each item an id of its own, or leave ids out.")
        items.append(Todo(id, content, item["status"], item.get("priority", "medium")))
    running = [todo.content for todo in items if todo.status == "in_progress"]
    if len(running) > 1:
        names = ", ".join(map(repr, running))
        message = f"{len(running)} items are in_progress: {names}."
        raise ToolFailure("validation_error", message, "Keep one in_progress; set the others to pending or completed.")
    return tuple(items)


def _judged(items: Sequence[Todo], before: Sequence[Todo], broken: str) -> tuple[Todo, ...]:
    """Return ``items`` with the last command in each newly completed one, if that command failed."""
    sure = {todo.id for todo in before if todo.done}
    judged = (todo if todo.status != "completed" or todo.id in sure else replace(todo, broken=broken) for todo in items)
    return tuple(judged)


def _free_id(wanted: str | None, taken: set[str]) -> str:
    if wanted and wanted not in taken:
        return wanted
    number = 1
    while str(number) in taken:
        number += 1
    return str(number)


def unfinished(items: Sequence[Todo]) -> tuple[Todo, ...]:
    return tuple(todo for todo in items if not todo.done)


def _counts(items: Sequence[Todo]) -> str:
    found = Counter("failed" if todo.broken else todo.status for todo in items)
    failed = f", {found['failed']} failed" if found["failed"] else ""
    return f"{found['completed']} completed, {found['in_progress']} in progress, {found['pending']} pending{failed}"


def _summary(items: Sequence[Todo]) -> str:
    failed = sum(bool(todo.broken) for todo in items)
    return (
        f"{len(items) - len(unfinished(items))}/{len(items)} done{f', {failed} failed' if failed else ''}"
        if items
        else "empty"
    )


def _listed(items: Sequence[Todo]) -> str:
    def line(todo: Todo) -> str:
        weight = "" if todo.priority == "medium" else f" ({todo.priority})"
        return f"{BROKEN if todo.broken else MARKS[todo.status]} {todo.id}. {todo.content}{weight}"

    return "\n".join(map(line, items))


class UnfinishedTodos:
    """core.agent.Interceptor: reminds the model once per turn, and once per list, when a turn would end with open
    items."""

    def __init__(self) -> None:
        self._reminded: WeakSet[Branch] = WeakSet()
        self._last: tuple[Todo, ...] = ()

    async def before(self, branch: Branch) -> None:
        """Do nothing."""

    async def after(self, reply: Message, branch: Branch) -> None:
        todos = branch.transcript.todos
        left = unfinished(todos)
        if not left or branch in self._reminded or todos == self._last:
            return
        self._reminded.add(branch)
        self._last = todos
        note = (
            f"The todo list still has open items:\n{_listed(left)}\n"
            "Go on with them if you can. If you are done or need the user, update the list or say why, and end."
        )
        branch.post(reminder(note))
