"""Hooks along a conversation: its prompts, its end, what is asked and compressed."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from ba_tui.core.conversation import Conversation
from ba_tui.core.events import Asked, Compressed, Event, Notice, TurnEnded
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.questions import Reply
from ba_tui.core.tool import Tool
from ba_tui.features.hooks.runner import Hooks, HookTurns, SessionFacts
from ba_tui.settings.hooks import Hook
from ba_tui.tools.builtin.small_tools import ask_user_tool
from ba_tui.tools.definitions import Definition
from tests.script import Memory, Mind, Script, Step, collect, kinds, says


class Stage:
    """A conversation with hooks, whose model plays a script."""

    def __init__(self, folder: Path, hooks: Sequence[Hook], *steps: Step, tools: Sequence[Tool] = ()) -> None:
        environment = {"PATH": os.environ["PATH"]}
        facts = SessionFacts("s-1", folder / "events.jsonl", folder, folder, environment, lambda: "default")
        self.turns = HookTurns(Hooks(hooks, facts, str))
        self.model = Script(*steps)
        self.journal = Memory()
        mind = Mind(self.model, tools, (self.turns,), 5)
        info = SessionInfo("s-1", "", folder, 0.0, 0.0, model="test/model")
        mind.listeners, mind.admits = (self.turns.apply,), self.turns.admit
        self.mind = mind
        self.conversation = Conversation(info, self.journal, mind)

    async def say(self, prompt: str = "go on") -> list[Event]:
        turn = self.conversation.say(prompt)

        def react(event: Event) -> None:
            if isinstance(event, Asked):
                turn.answer(event.ask_id, Reply("once"))

        return await collect(turn, react)

    def read(self) -> str:
        """All that the model was last sent."""
        return "\n".join(message.text for message in self.model.requests[-1].messages)


def notices(events: Sequence[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Notice)]


async def test_a_prompt_that_is_blocked_leaves_nothing(tmp_path: Path) -> None:
    stage = Stage(
        tmp_path, [Hook("user_prompt", "grep -q secret && { echo not that >&2; exit 2; }; exit 0")], says("fine")
    )
    events = await stage.say("the secret")
    assert kinds(events) == ["turn_ended"]
    ended = events[-1]
    assert isinstance(ended, TurnEnded)
    assert ended.error is not None
    assert (ended.error.kind, ended.error.message) == (
        "prompt_refused",
        "A hook blocked the prompt: not that.",
    )
    assert (stage.journal.lines, stage.conversation.transcript.messages, stage.model.requests) == ([], (), [])
    assert kinds(await stage.say("hello"))[-1] == "turn_ended"
    assert "secret" not in stage.read()


async def test_words_of_hooks_go_with_the_prompt(tmp_path: Path) -> None:
    specific = {"hookSpecificOutput": {"additionalContext": "it is Monday"}}
    hooks = [Hook("session_start", "echo the deploy is frozen"), Hook("user_prompt", f"echo '{json.dumps(specific)}'")]
    stage = Stage(tmp_path, hooks, says("one"), says("two"))
    await stage.say("hello")
    assert stage.read().startswith("hello<system-reminder>\nA hook of the user adds:\nthe deploy is frozen\n")
    assert "it is Monday" in stage.read()
    await stage.say("and now")
    assert (stage.read().count("frozen"), stage.read().count("Monday")) == (1, 2)


async def test_a_session_that_goes_on_says_so(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [Hook("session_start", "cat > told", "resume")], says("one"), says("two"))
    await stage.say()
    assert not (tmp_path / "told").exists()
    again = HookTurns(stage.turns.hooks)
    stage.mind.admits = again.admit
    await stage.say()
    assert json.loads((tmp_path / "told").read_text())["source"] == "resume"


async def test_a_hook_may_make_the_agent_go_on_a_few_times(tmp_path: Path) -> None:
    hook = Hook("stop", "cat >> told; echo >> told; echo the tests fail >&2; exit 2")
    stage = Stage(tmp_path, [hook], *(says(f"answer {n}") for n in range(9)))
    events = await stage.say()
    assert kinds(events).count("message_done") == 4
    assert "A hook of the user does not let you stop yet: the tests fail" in stage.read()
    assert notices(events) == ["Hooks asked the agent to continue 4 times in a row; the turn ends here."]
    told = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]
    assert [each["stop_hook_active"] for each in told] == [False, True, True, True]
    assert [each["last_assistant_message"] for each in told] == ["answer 0", "answer 1", "answer 2", "answer 3"]


async def test_a_hook_may_end_the_turn(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [Hook("stop", """echo '{"continue": false, "stopReason": "enough"}'""")], says("one"))
    ended = (await stage.say())[-1]
    assert isinstance(ended, TurnEnded)
    assert ended.reason == "limit"
    assert ended.error is not None
    assert ended.error.message == "A hook ended the turn: enough"


async def test_a_waiting_question_is_told_and_the_end_too(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "heard")
    hooks = [Hook("notification", "cat > told; echo > heard", "elicitation_dialog"), Hook("session_end", "cat > ended")]
    ask = ask_user_tool(Definition("Asks.", {"type": "object"}, "ask_user"))
    stage = Stage(tmp_path, hooks, says("", ("ask_user", {"question": "Which one?"})), says("done"), tools=[ask])
    await stage.say()
    await asyncio.to_thread((tmp_path / "heard").read_bytes)
    assert json.loads((tmp_path / "told").read_text())["message"] == "Which one?"
    assert not (tmp_path / "ended").exists()
    await stage.turns.close()
    assert json.loads((tmp_path / "ended").read_text())["hook_event_name"] == "SessionEnd"


async def test_compression_may_be_held_up(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [Hook("pre_compact", "echo not now >&2; exit 2", "auto")])
    assert await stage.turns.before_compress("auto") == "not now"
    assert await stage.turns.before_compress("manual", "the tests") is None


async def test_what_must_not_be_forgotten_is_said_again_after_a_compression(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [Hook("session_start", "echo the deploy is frozen", "compact")], says("one"), says("two"))
    await stage.say()
    assert "frozen" not in stage.read()
    stage.turns.apply(Compressed((), "summarize", 100, 10))
    await stage.say()
    assert stage.read().count("the deploy is frozen") == 1


@pytest.mark.parametrize("event", ["user_prompt", "stop", "session_start"])
async def test_a_broken_hook_is_told_and_the_turn_goes_on(tmp_path: Path, event: str) -> None:
    stage = Stage(tmp_path, [Hook(event, "exit 7")], says("fine"))
    events = await stage.say()
    assert notices(events) == ["The hook “exit 7” failed (exit 7)."]
    ended = events[-1]
    assert isinstance(ended, TurnEnded)
    assert ended.reason == "done"
