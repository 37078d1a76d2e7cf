"""What a hook's command is told, what its words mean, and that nothing it does goes out of bounds."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.features.hooks.answers import (
    CommandResult,
    HookAnswer,
    HookVerdict,
    combined,
    hook_run,
    read_answer,
    run_command,
)
from ba_tui.features.hooks.runner import HookEvent, Hooks, SessionFacts
from ba_tui.processes.programs import BriefRun
from ba_tui.settings.hooks import Hook


@pytest.fixture
def facts(tmp_path: Path) -> SessionFacts:
    environment = {"PATH": os.environ["PATH"], "KEPT": "yes"}
    return SessionFacts("s-1", tmp_path / "events.jsonl", tmp_path, tmp_path, environment, lambda: "accept-edits")


def hook_command(folder: Path, command: str, *, data: bytes = b"{}", timeout: float = 10) -> BriefRun:
    return hook_run(Hook("pre_tool", command), data, folder, {"PATH": os.environ["PATH"]}, timeout)


async def test_a_hook_is_told_what_claude_code_tells(facts: SessionFacts, tmp_path: Path) -> None:
    command = 'cat > told.json; echo "$KEPT $BA_PROJECT_DIR $CLAUDE_PROJECT_DIR" > env'
    hooks = Hooks([Hook("pre_tool", command, "Bash")], facts, str)
    verdict = await hooks.fire(
        HookEvent("pre_tool", {"tool_name": "shell", "tool_input": {"command": "ls"}}, ("shell", "Bash"))
    )
    assert verdict == HookVerdict()
    assert json.loads((tmp_path / "told.json").read_text()) == {
        "session_id": "s-1",
        "transcript_path": str(tmp_path / "events.jsonl"),
        "cwd": str(tmp_path),
        "hook_event_name": "PreToolUse",
        "permission_mode": "acceptEdits",
        "tool_name": "shell",
        "tool_input": {"command": "ls"},
    }
    assert (tmp_path / "env").read_text() == f"yes {tmp_path} {tmp_path}\n"
    assert await hooks.fire(HookEvent("pre_tool", {}, ("grep", "Grep"))) == HookVerdict()


async def test_a_hanging_hook_is_ended_with_all_it_started(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    alive = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    ran = await run_command(hook_command(tmp_path, "exec 3> alive; echo up >&3; sleep 60 & sleep 60", timeout=1))
    assert ran == CommandResult(None, trouble="took longer than 1 s and was ended.")
    os.set_blocking(alive, True)
    with os.fdopen(alive, "rb") as held:
        assert held.read() == b"up\n", "whoever held the pipe is gone"


async def test_a_flood_is_ended(tmp_path: Path) -> None:
    assert (await run_command(hook_command(tmp_path, "yes"))).trouble == "printed more than 64 KB and was ended."
    assert (await run_command(hook_command(tmp_path, "yes >&2"))).trouble == "printed more than 64 KB and was ended."


async def test_what_it_leaves_behind_holds_nobody_up(tmp_path: Path) -> None:
    ran = await run_command(hook_command(tmp_path, "sleep 60 & echo said; exit 3"))
    assert ran == CommandResult(3, "said\n")


async def test_a_hook_need_not_read(tmp_path: Path) -> None:
    ran = await run_command(hook_command(tmp_path, "exec <&-; echo fine", data=b"x" * 1_000_000))
    assert ran == CommandResult(0, "fine\n")
    counted = await run_command(hook_command(tmp_path, "wc -c", data=b"x" * 1_000_000))
    assert counted.out.strip() == "1000000"


async def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    ran = await run_command(hook_command(tmp_path / "gone", "true"))
    assert (ran.code, ran.trouble) == (None, "could not be started: No such file or directory.")


async def test_cancelling_ends_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    task = asyncio.create_task(run_command(hook_command(tmp_path, "exec 3> alive; echo begun >&3; sleep 60")))
    with await asyncio.to_thread((tmp_path / "alive").open) as pipe:
        assert await asyncio.to_thread(pipe.readline) == "begun\n"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(pipe.read) == "", "whoever held the pipe is gone"


def said(**output: object) -> HookAnswer:
    return read_answer(Hook("pre_tool", "x"), CommandResult(0, json.dumps(output)))


def test_exit_codes() -> None:
    hook = Hook("pre_tool", "x")
    assert read_answer(hook, CommandResult(2, "{}", "never that\n")) == HookAnswer(hook, "deny", "never that")
    assert read_answer(hook, CommandResult(2)).reason == "It was blocked, without a reason."
    assert read_answer(hook, CommandResult(1, "{}", "\n\x1b[31mbad\nmore")).trouble == "failed (exit 1): bad"
    assert read_answer(hook, CommandResult(-11)).trouble == "was killed (signal 11)."
    assert read_answer(hook, CommandResult(0, "just words")) == HookAnswer(hook)
    speaking = Hook("user_prompt", "x")
    assert read_answer(speaking, CommandResult(0, "just words\n")) == HookAnswer(speaking, context="just words")


def test_json_is_read_in_both_generations_of_its_shape() -> None:
    specific = {"permissionDecision": "deny", "permissionDecisionReason": "no", "hookEventName": "PreToolUse"}
    assert (said(hookSpecificOutput=specific).decision, said(hookSpecificOutput=specific).reason) == ("deny", "no")
    assert (said(decision="block", reason="no").decision, said(decision="approve").decision) == ("deny", "allow")
    assert said(hookSpecificOutput={"decision": {"behavior": "deny", "message": "no"}}).reason == "no"
    assert said(hookSpecificOutput={"updatedInput": {"a": 1}, "additionalContext": "c"}).rewritten == {"a": 1}
    assert said(**{"continue": False, "stopReason": "enough"}).stop == "enough"
    assert said(systemMessage="look\nhere").message == "look"


@pytest.mark.parametrize(
    "out",
    ["{", '{"decision": "maybe"}', '{"continue": "no"}', '{"hookSpecificOutput": []}', "{" * 30_000, '{"reason": 3}'],
)
def test_nonsense_that_begins_like_json_is_a_failure(out: str) -> None:
    answer = read_answer(Hook("pre_tool", "x"), CommandResult(0, out))
    assert answer.trouble.startswith("answered with JSON that can't be used: ")
    assert (answer.decision, answer.rewritten, len(answer.trouble) < 400) == ("", None, True)


def test_several_hooks_decide_together() -> None:
    def answer(command: str, **fields: object) -> HookAnswer:
        return HookAnswer(Hook("pre_tool", command), **fields)  # pyright: ignore[reportArgumentType]

    allow, ask, deny = (
        answer("a", decision="allow"),
        answer("b", decision="ask"),
        answer("c", decision="deny", reason="no"),
    )
    assert (combined([allow, deny, ask]).decision, combined([allow, ask]).decision) == ("deny", "ask")
    assert (combined([deny, allow]).by, combined([deny, allow]).reason) == ("c", "no")
    assert combined([]) == HookVerdict()
    both = combined([answer("a", rewritten={"n": 1}), answer("b", rewritten={"n": 2})])
    assert (both.rewritten, both.rewriter) == ({"n": 2}, "the hook “b”")
    assert [notice.text for notice in both.notices] == [
        "2 hooks changed the same call; the hook “b” counts, as the last one."
    ]


async def test_the_same_command_runs_once_and_all_run_together(facts: SessionFacts, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    # Each waits for the other: one after the other they would never end.
    hooks = [Hook("stop", "echo x > pipe"), Hook("stop", "cat pipe >> got"), Hook("stop", "cat pipe >> got")]
    assert await Hooks(hooks, facts, str).fire(HookEvent("stop")) == HookVerdict()
    assert (tmp_path / "got").read_text() == "x\n"


async def test_what_goes_wrong_is_one_line(facts: SessionFacts) -> None:
    broken: list[tuple[str, Callable[[str], bool]]] = [
        ("kill -9 $$", lambda text: text.endswith("was killed (signal 9).")),
        ("no-such-program", lambda text: "failed (exit 127): " in text),
        ("echo '{nonsense'", lambda text: "JSON that can't be used" in text),
        (r"printf '\033[2J\377' >&2; exit 1", lambda text: "\x1b" not in text),
    ]
    for command, fits in broken:
        verdict = await Hooks([Hook("pre_tool", command, source="config.yaml:3")], facts, str).fire(
            HookEvent("pre_tool")
        )
        assert verdict.decision == ""
        assert [fits(notice.text) and "\n" not in notice.text for notice in verdict.notices] == [True], verdict
        assert verdict.notices[0].hint == "See config.yaml:3."


_WORDS = "continue stopReason decision reason systemMessage hookSpecificOutput behavior updatedInput other"
_KEYS = st.sampled_from([*_WORDS.split(), "permissionDecision", "permissionDecisionReason", "additionalContext"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=10,
)


@given(
    said=st.dictionaries(_KEYS, _JSON, max_size=5), cut=st.integers(0, 200), code=st.sampled_from([0, 0, 0, 1, 2, -9])
)
def test_no_answer_is_too_strange(said: dict[str, object], cut: int, code: int) -> None:
    text = json.dumps(said)
    for out in (text, text[:cut], f"{text}\x00\x1b[2J"):
        answer = read_answer(Hook("pre_tool", "x"), CommandResult(code, out, out))
        verdict = combined([answer])
        assert verdict.decision in {"", "allow", "ask", "deny"}
        assert not (answer.trouble and answer.decision), "what failed says nothing"
        assert all("\x1b" not in notice.text and "\n" not in notice.text for notice in verdict.notices)


async def test_it_keeps_how_each_hook_went_the_last_time(facts: SessionFacts) -> None:
    good, bad = Hook("stop", "true"), Hook("stop", "echo no >&2; exit 2")
    hooks = Hooks([good, bad], facts, str)
    assert hooks.runs == {}
    await hooks.fire(HookEvent("stop"))
    await hooks.fire(HookEvent("stop"))
    assert (hooks.runs[good].outcome, hooks.runs[good].count, hooks.runs[good].failed) == ("ok", 2, False)
    assert hooks.runs[bad].outcome == "denied"
    hooks = Hooks([Hook("stop", "exit 3")], facts, str)
    await hooks.fire(HookEvent("stop"))
    assert [(run.outcome, run.failed) for run in hooks.runs.values()] == [("failed (exit 3)", True)]
