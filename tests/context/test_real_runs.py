"""Every strategy over real agent runs that lie beside the checkout: nothing breaks, and what matters is kept."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ba_tui.context.compression.rounds import rounds_of
from ba_tui.context.compression.strategies import extract, faults, truncate
from ba_tui.core.messages import Block, Message, Text, ToolOutput, ToolUse, user
from tests.context.conversations import count
from tests.eval.compression.measure import BUDGETS, WAYS, Counted, Score, folded
from tests.eval.compression.used import USED_KINDS, facts_used

pytestmark = pytest.mark.outside
SHARE = 0.3


def runs(folder: Path) -> Iterator[tuple[str, list[Message], dict[str, Any]]]:
    for path in sorted((folder / "transcripts" / "sweagent").glob("*.json")):
        told = json.loads(path.read_text("utf-8"))
        messages: list[Message] = []
        for said in told["messages"]:
            if message := _message(said):
                if messages and messages[-1].role == message.role:
                    messages[-1] = messages[-1].joined(message)
                else:
                    messages.append(message)
        yield path.name, messages, told["facts"]


def _message(said: dict[str, Any]) -> Message | None:
    text = said["content"]
    match said["role"]:
        case "system":
            return None
        case "tool":
            outputs = tuple(ToolOutput(id, text) for id in said["tool_call_ids"])
            return Message("user", outputs, origin="tool")
        case "user":
            return user(text)
        case _:
            blocks: list[Block] = [Text(text)] if text.strip() else []
            for call in said.get("tool_calls") or ():
                given = call["function"]
                blocks.append(ToolUse(call["id"], given["name"], json.loads(given["arguments"])))
            return Message("assistant", tuple(blocks), origin="assistant")


def test_requests_stay_valid_and_fit(outside_data: Path) -> None:
    seen = 0
    for name, messages, _ in runs(outside_data):
        assert faults(messages) == [], name
        room = int(count(messages) * SHARE)
        for strategy in (extract, truncate):
            made = strategy(messages, room, count).messages
            assert count(made) <= room, name
            assert faults(made, messages) == [], name
            again = strategy(made, max(60, room // 2), count).messages
            assert faults(again, messages) == [], name
        seen += 1
    assert seen


def test_task_last_turns_and_files_stay(outside_data: Path) -> None:
    files = kept = 0
    for name, messages, facts in runs(outside_data):
        room = count(messages) // 2
        made = extract(messages, room, count).messages
        text = folded(made)
        rounds = rounds_of(messages).rounds
        last = rounds[-1].messages
        if len(rounds) == 1 and count(messages[:1]) < room // 2:
            assert messages[0] in made, name
            assert made[-2:] == tuple(messages[-2:]), name
        elif len(rounds) > 1 and count(last) < room // 2:
            assert made[-len(last) :] == last, name
        files += len(facts["files_touched"])
        kept += sum(path.casefold() in text for path in facts["files_touched"])
    assert kept >= 0.95 * files


def facts_in(messages: Sequence[Message], told: dict[str, Any]) -> Counter[str]:
    """How many facts of each kind ``messages`` hold: what was asked, files, lines that name an error, last actions."""
    calls = [call for message in messages for call in message.calls]
    given = " ".join(str(value) for call in calls for value in (call.name, *call.input.values()))
    text = f"{folded(messages)} {' '.join(given.casefold().split())}"
    kinds = {
        "request": [told["task_excerpt"][:120]],
        "file": told["files_touched"],
        "error": told["error_lines"],
        "action": told["last_actions"],
    }
    held = {kind: sum(" ".join(fact.casefold().split()) in text for fact in facts) for kind, facts in kinds.items()}
    return Counter(held)


def test_no_plain_way_keeps_more_of_any_kind(outside_data: Path) -> None:
    for budget in BUDGETS:
        kept: dict[str, Counter[str]] = {}
        for _, messages, told in runs(outside_data):
            room = int(Counted()(messages) * budget)
            for way in ("EXTRACT", "plain truncation", "first + last"):
                made = WAYS[way](messages, room)
                # What is too large to be sent keeps nothing.
                held = facts_in(made, told) if Counted()(made) <= room else Counter[str]()
                kept[way] = kept.get(way, Counter()) + held
        ours = kept.pop("EXTRACT")
        for way, theirs in kept.items():
            worse = {kind: (ours[kind], number) for kind, number in theirs.items() if ours[kind] < number}
            assert not worse, f"{way} at {budget:.0%}"
            assert ours.total() > 1.15 * theirs.total(), f"{way} at {budget:.0%}"
        assert ours["error"] >= 1.1 * kept["plain truncation"]["error"]


def test_of_what_later_steps_use_no_kind_keeps_less_than_by_truncation(outside_data: Path) -> None:
    before = [story for name, messages, _ in runs(outside_data) for story in facts_used(messages, name)]
    for budget in BUDGETS:
        ours, theirs = Score(), Score()
        for story in before:
            ours.add(story, WAYS["EXTRACT"], budget)
            theirs.add(story, WAYS["plain truncation"], budget)
        assert ours.over == 0
        worse = {kind: (ours.of(kind), theirs.of(kind)) for kind in USED_KINDS if ours.of(kind) < theirs.of(kind)}
        assert not worse, budget
        assert ours.share >= theirs.share + 0.1
