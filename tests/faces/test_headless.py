"""Print mode: the three formats, the exit codes, and that nobody is asked."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import AuthFailed, SessionNotFound
from ba_tui.core.events import (
    Compressed,
    MessageDone,
    Notice,
    Retrying,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import Message, Text, Thinking, ToolUse, Usage, user
from ba_tui.core.provider import ModelRequest, ReplyChunk
from ba_tui.core.questions import Question
from ba_tui.core.results import CommandText, ToolResult, failure
from ba_tui.core.services import Services
from ba_tui.core.start import Start
from ba_tui.core.tool import Call, Tool
from ba_tui.faces.headless import Printer, denial, refusals, speak
from ba_tui.faces.run_result import RunResult
from ba_tui.faces.tui.transcript.fold import RecordFold
from ba_tui.faces.tui.transcript.records import ToolRow
from tests.faces.tui.agents.story import begins, ends, starts, works
from tests.script import Script, conversation, says


class Shelf:
    """A library with one new conversation."""

    def __init__(self, talk: Conversation) -> None:
        self.talk = talk

    def create(self) -> Conversation:
        return self.talk

    def sessions(self, *, everywhere: bool = False) -> list[Any]:
        return []

    def find(self, key: str, *, unattended: bool = True) -> Any:
        raise SessionNotFound(f"No session matches {key!r}.", "See ba sessions list.")


class Ready:
    def __init__(self, missing: str = "") -> None:
        self._missing = missing

    def missing(self, model: str) -> str:
        return self._missing


async def asks(args: Mapping[str, Any], call: Call) -> ToolResult:
    question = Question("permission", "Run?", call_id=call.id, reason="No rule allows it", rule="asks(a b)")
    reply = await call.ask(question)
    return failure("permission_denied", reply.text) if reply.choice == "deny" else ToolResult("ran")


async def run(
    *steps: Any, format: str = "text", start: Start | None = None, timeout: float | None = None, missing: str = ""
) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    tool = Tool("asks", "Asks.", {"type": "object"}, asks)
    talk = conversation(Script(*steps), tool, max_loops=5)
    services = Services(Shelf(talk), None, Ready(missing), [Notice("Unknown setting.", "warning")])  # type: ignore[arg-type]
    code = await speak(services, start or Start("hello"), Printer(format, out, err), timeout)
    return code, out.getvalue(), err.getvalue()


async def test_text_prints_the_answer_and_nothing_else_on_stdout():
    code, out, err = await run(says("Looking.", ("asks", {})), says("All **good**."))
    assert out == "All **good**.\n"
    assert "ba: asks" in err
    assert "Unknown setting." in err
    assert err.splitlines()[-2:] == [
        "ba: 1 call was denied:",
        "ba:   asks: no user was present to approve it. No rule allows it. To allow it: --allow 'asks(a b)'",
    ]
    assert code == 4


async def test_the_answer_is_printed_before_helpers_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    out, talk, printed = io.StringIO(), conversation(Script(says("Hi."))), []
    close = talk.close

    async def closing() -> None:
        printed.append(out.getvalue())
        await close()

    monkeypatch.setattr(talk, "close", closing)
    services = Services(Shelf(talk), None, Ready(""), [])  # type: ignore[arg-type]
    assert await speak(services, Start("hello"), Printer("text", out, io.StringIO())) == 0
    assert printed == ["Hi.\n"]


async def test_a_plain_answer_is_exit_0():
    assert (await run(says("Hi.")))[0] == 0


async def test_json_has_every_field_of_the_contract():
    code, out, _ = await run(says("", ("asks", {})), says("Done."), format="json")
    report = json.loads(out)
    assert code == 4
    assert report["result"] == "Done."
    assert report["session_id"] == "20261121-120000-test"
    assert report["model"] == "test/model"
    assert report["stop_reason"] == "done"
    assert report["num_turns"] == 2
    assert report["usage"] == {"input": 200, "output": 20, "cache_read": 0, "cache_write": 0}
    assert report["cost_usd"] == pytest.approx(2 * (100 + 20) / 1e6)
    assert [(row["name"], row["ok"]) for row in report["tool_calls"]] == [("asks", False)]
    assert report["denied"][0]["tool"] == "asks"
    assert "Nobody is here" in report["denied"][0]["reason"]
    assert report["denied"][0]["asked"] == "No rule allows it"
    assert report["denied"][0]["rule"] == "asks(a b)"
    assert type(report["duration_ms"]) is int
    assert "error" not in report


def test_the_number_of_turns_counts_answers_of_the_main_agent_alone():
    outcome = RunResult()
    for agent in ("main", "main/explore-1", "main/explore-1", "main"):
        outcome.apply(MessageDone(says("x"), None, agent=agent))
    assert outcome.report(0)["num_turns"] == 2


async def test_stream_json_is_one_event_a_line_and_ends_with_the_result():
    thought = Message("assistant", (Thinking("hm"), Text("Done.")), stop="end_turn", origin="assistant")
    _, out, _ = await run(says("", ("asks", {})), thought, format="stream-json")
    lines = [json.loads(line) for line in out.splitlines()]
    kinds = [line["type"] for line in lines if line["type"] != "activity"]
    assert kinds == ["init", "notice", "tool_use", "usage", "tool_result", "thinking", "message", "result"]
    states = [line["activity"] for line in lines if line["type"] == "activity"]
    assert states[:2] == ["thinking", "acting"]
    assert states[-1] == "finished"
    assert lines[-1]["result"] == "Done."


def test_a_command_of_which_a_part_failed_is_no_success():
    call = ToolUse("c", "shell", {"command": "pytest -q | tail -5"})
    shown = CommandText("pytest -q | tail -5", ".", "1 failed", 0, failed=True)
    events = [
        ToolStarted(call, "pytest -q | tail -5"),
        ToolFinished("c", ToolResult("1 failed", shown, summary="exit 0")),
    ]
    out, outcome = io.StringIO(), RunResult()
    printer = Printer("stream-json", out, io.StringIO())
    for event in events:
        outcome.apply(event)
        printer.event(event)
    assert outcome.tools[0]["ok"] is False
    printer.begin(conversation(Script()))
    assert [json.loads(line)["ok"] for line in out.getvalue().splitlines() if '"ok"' in line] == [False]
    records = RecordFold("main")
    for event in (TurnStarted(user("go")), MessageDone(Message("assistant", (call,))), *events):
        records.apply(event)
    assert [item.state for item in records.items if isinstance(item, ToolRow)] == ["failed"]


def test_what_sub_agents_do_is_told_with_their_names_and_is_no_part_of_the_answer():
    events = [*begins("1"), *starts("main/explore-1", "1"), *works("main/explore-1"), *ends("main/explore-1", "1")]
    for format in ("text", "stream-json", "json"):
        out, err = io.StringIO(), io.StringIO()
        printer, outcome = Printer(format, out, err), RunResult()
        for event in [*events, MessageDone(says("All is read.")), TurnEnded("done")]:
            outcome.apply(event)
            printer.event(event)
        printer.finish(outcome)
        if format == "text":
            assert out.getvalue() == "All is read.\n"
            assert "ba: explore-1: read_file a.txt\n" in err.getvalue()
            assert "ba: explore-1: finished\n" in err.getvalue()
        else:
            *told, result = map(json.loads, out.getvalue().splitlines())
            assert result["agents"] == [
                {
                    "agent": "main/explore-1",
                    "type": "explore",
                    "description": "Look at main/explore-1",
                    "ending": "done",
                }
            ]
            assert [each.get("agent") for each in result["tool_calls"]] == [None, "main/explore-1"]
            kinds = [line["type"] for line in told if line.get("agent") == "main/explore-1"]
            assert format == "json" or (kinds[0], kinds[-1]) == ("agent_started", "agent_ended")


async def test_an_answer_in_several_parts_is_printed_whole():
    parts = (says("One, ", stop="max_tokens"), says("two, ", stop="max_tokens"), says("three."))
    assert await run(*parts) == (0, "One, two, three.\n", "ba: Unknown setting.\n")
    _, out, _ = await run(*parts, format="json")
    assert json.loads(out)["result"] == "One, two, three."
    _, out, _ = await run(says("Looking. ", ("asks", {}), stop="max_tokens"), says("Done."))
    assert out == "Done.\n"


@pytest.mark.parametrize(
    ("stop", "code", "said"),
    [
        ("refusal", 2, "The model declined to go on."),
        ("context_window", 3, "The context window is full"),
        ("max_tokens", 3, "The output limit was reached"),
        ("pause_turn", 3, "The model paused"),
    ],
)
async def test_an_answer_that_ends_early_is_no_success(stop: Any, code: int, said: str):
    ended, out, err = await run(*[says("Words.", stop=stop)] * 4)
    assert ended == code
    assert out.startswith("Words.")
    assert said in err
    _, out, _ = await run(*[says("", stop=stop)] * 4, format="json")
    report = json.loads(out)
    assert (report["stop_reason"], report["error"]["kind"]) == (stop, stop)


async def test_an_answer_without_words_is_told():
    code, out, err = await run(says(""))
    assert (code, out) == (0, "")
    assert "no text" in err


async def test_the_step_limit_is_exit_3_with_the_best_answer_so_far():
    steps = [says(f"s{n}", ("asks", {"n": n})) for n in range(5)]
    code, out, err = await run(*steps, says("So far."))
    assert (code, out) == (3, "So far.\n")
    assert "limit of 5 steps" in err


async def test_going_in_circles_is_exit_3_and_told_as_nobodys_words():
    code, out, err = await run(*[says("Again.", ("aks", {}))] * 3, says("So far."))
    assert (code, out) == (3, "So far.\n")
    assert err.splitlines()[-1] == (
        "ba: Stopped: the same impossible call of 'aks' was made 3 times. Say what to do differently."
    )
    assert not denial(Question("continue", "Go on?")).text


async def test_a_provider_error_is_exit_2_with_its_cure_in_one_line():
    code, out, err = await run(AuthFailed("The key was refused (401).", "Check ANTHROPIC_API_KEY."))
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == "ba: The key was refused (401). Check ANTHROPIC_API_KEY."


async def test_stream_json_tells_an_error_as_a_line():
    _, out, _ = await run(AuthFailed("The key was refused (401).", "Check ANTHROPIC_API_KEY."), format="stream-json")
    (error,) = [line for line in map(json.loads, out.splitlines()) if line["type"] == "error"]
    assert (error["kind"], error["retrying"]) == ("auth_failed", False)
    assert error["message"].startswith("The key was refused")


async def test_a_time_limit_is_exit_3_and_keeps_the_words():
    async def stuck(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        yield TextDelta("Half")
        await asyncio.Event().wait()

    code, out, err = await run(stuck, timeout=0.5)
    assert (code, out) == (3, "Half\n")
    assert "time limit" in err


async def test_json_tells_usage_and_cost_by_model_and_of_summaries():
    async def shortened(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        yield Compressed(tuple(request.messages), "summarize", 900, 300, 0.25, "the goal", usage=Usage(700, 30))
        yield Message("assistant", (Text("Done."),), Usage(100, 10, 800, 90), "end_turn", "test/model", "assistant")

    _, out, _ = await run(shortened, format="stream-json")
    lines = [line for line in map(json.loads, out.splitlines()) if line["type"] != "activity"]
    assert [line["type"] for line in lines] == ["init", "notice", "compaction", "message", "usage", "result"]
    assert (lines[2]["before"], lines[2]["after"], lines[2]["cost_usd"]) == (900, 300, 0.25)
    report = lines[-1]
    answer = (100 + 2 * 10 + 0.1 * 800 + 1.25 * 90) / 1e6
    usage = {"input": 100, "output": 10, "cache_read": 800, "cache_write": 90}
    assert report["models"] == {"test/model": {"usage": usage, "cost_usd": round(answer, 6)}}
    assert report["summaries_cost_usd"] == 0.25
    assert report["summaries_usage"] == {"input": 700, "output": 30, "cache_read": 0, "cache_write": 0}
    assert (report["usage"]["input"], report["usage"]["output"]) == (800, 40)
    assert report["cost_usd"] == pytest.approx(0.25 + answer, abs=1e-6)


async def test_an_empty_prompt_is_exit_1():
    code, out, err = await run(start=Start(" "))
    assert (code, out) == (1, "")
    assert "The prompt is empty." in err


async def test_a_missing_key_is_exit_1_before_anything_is_sent():
    code, out, err = await run(missing="No API key. Set ANTHROPIC_API_KEY.", format="json")
    assert code == 1
    assert "ANTHROPIC_API_KEY" in json.loads(out)["error"]["message"]
    assert "ANTHROPIC_API_KEY" in err


@pytest.mark.parametrize("resume", ["last", "nothing like it"])
async def test_a_session_that_is_not_there_is_exit_1(resume: str):
    code, _, err = await run(start=Start("hi", resume=resume))
    assert code == 1
    assert "session" in err


async def test_escape_sequences_of_the_model_never_reach_stdout():
    _, out, err = await run(says("a\x1b]0;pwned\x07b\x9b31mc"))
    assert not set(out + err) & {"\x1b", "\x07", "\x9b"}


@pytest.mark.parametrize("format", ["text", "stream-json"])
async def test_a_wait_for_a_rate_limit_is_told_and_no_error(format: Any):
    out, err = io.StringIO(), io.StringIO()
    printer = Printer(format, out, err)
    printer.begin(conversation(Script()))
    printer.event(Retrying("mine is limited to 2 requests a minute in the settings.", 20.0, 0, 0))
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["type"] for line in lines] == ([] if format == "text" else ["init", "notice"])
    assert ("in the settings. Next request in 20 s." in err.getvalue()) == (format == "text")


def test_each_rule_that_would_allow_a_call_is_a_flag_of_its_own():
    denied = {
        "tool": "shell",
        "target": "git add . && git commit",
        "reason": "",
        "asked": "it asks",
        "rule": "a(b:*)\nc",
    }
    _, told = refusals([denied])
    assert told.endswith("To allow it: --allow 'a(b:*)' --allow c")
