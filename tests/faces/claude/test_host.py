"""A conversation in Claude Code's lines: prompts, approvals, control requests, wrong lines, ends."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from ba_tui.core.errors import AuthFailed
from ba_tui.core.events import (
    TextDelta,
)
from ba_tui.core.messages import Image, Text
from ba_tui.core.provider import ModelRequest, ReplyChunk
from tests.faces.claude.program import Line, Program, control, hosted, prompt
from tests.script import says

WRITES = says("", ("write_file", {"path": "a.txt", "content": "x"}))


async def talked(*lines: Line | bytes, steps: tuple[Any, ...] = (), turns: int = 1, **options: Any) -> Any:
    program = Program(turns=turns)
    program.send(*lines)
    if not turns:
        program.close()
    return await hosted(program, *steps, **options)


def answering(answer: Callable[[Line], Line]) -> Callable[[Line, Program], None]:
    """A program that answers every question with ``answer`` of the request."""

    def react(line: Line, program: Program) -> None:
        if line["type"] == "control_request":
            response = {"subtype": "success", "request_id": line["request_id"], "response": answer(line["request"])}
            program.send({"type": "control_response", "response": response})

    return react


async def asked(answer: Callable[[Line], Line], **options: Any) -> Any:
    program = Program(answering(answer))
    program.send(prompt())
    return await hosted(program, WRITES, says("Done."), asks=True, **options)


def result_of(ran: Any) -> Line:
    return ran.program.lines[-1]


async def test_prompts_are_turns_of_one_session():
    ran = await talked(
        prompt("first"), prompt([{"type": "text", "text": "second"}]), steps=(says("One."), says("Two.")), turns=2
    )
    assert ran.code == 0
    assert [line["result"] for line in ran.program.of("result")] == ["One.", "Two."]
    assert {line["session_id"] for line in ran.program.lines} == {"20261121-120000-test"}
    assert [line["type"] for line in ran.program.lines] == ["system", "assistant", "result"] * 2
    first, second = ran.program.of("result")
    assert (first["usage"]["input_tokens"], second["usage"]["input_tokens"]) == (100, 100), "of each turn"
    assert second["total_cost_usd"] == pytest.approx(2 * first["total_cost_usd"]), "of the run"
    assert second["modelUsage"]["test/model"]["inputTokens"] == 200


async def test_pictures_and_documents_reach_the_model():
    data = base64.b64encode(b"picture").decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    ran = await talked(
        prompt([{"type": "text", "text": "what?"}, {"type": "image", "source": source}]), steps=(says("A dot."),)
    )
    sent = ran.talk.transcript.messages[0]
    assert [type(block) for block in sent.blocks] == [Text, Image]
    assert sent.blocks[1].data == data


async def test_prompts_are_repeated_when_that_is_asked_for():
    ran = await talked(prompt("first", uuid="u-1"), steps=(says("One."),), replay=True)
    (echo,) = ran.program.of("user")
    assert (echo["isReplay"], echo["uuid"], echo["message"]) == (True, "u-1", {"role": "user", "content": "first"})


async def test_calls_have_the_names_and_arguments_of_claude_code():
    ran = await talked(prompt(), steps=(WRITES, says("No.")))
    call = ran.program.of("assistant")[0]["message"]["content"][0]
    assert (call["name"], call["input"]) == ("Write", {"file_path": "/srv/a.txt", "content": "x"})
    (output,) = ran.program.of("user")[0]["message"]["content"]
    assert (output["tool_use_id"], output["is_error"]) == (call["id"], True)
    assert result_of(ran)["permission_denials"] == [
        {"tool_name": "Write", "tool_use_id": call["id"], "tool_input": call["input"]}
    ]
    assert (ran.code, result_of(ran)["subtype"], result_of(ran)["num_turns"]) == (0, "success", 2)


async def test_arguments_that_make_no_sense_are_told_as_they_are():
    odd = says("", ("shell", {"command": "ls", "timeout": "soon"}), ("apply_patch", {"patch": "nonsense"}))
    ran = await talked(prompt(), steps=(odd, says("Well.")))
    names = [line["message"]["content"][0].get("name") for line in ran.program.of("assistant")]
    assert names[:2] == ["shell", "Edit"]


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        (
            lambda asked: {"behavior": "allow", "updatedInput": asked["input"]},
            "wrote {'path': 'a.txt', 'content': 'x'} (once",
        ),
        (lambda asked: {"behavior": "allow"}, "(once, None)"),
        (
            lambda asked: {"behavior": "allow", "updatedInput": {**asked["input"], "content": "y"}},
            "wrote {'path': 'a.txt', 'content': 'y'}",
        ),
        (
            lambda asked: {"behavior": "allow", "updatedInput": {**asked["input"], "mode": 7}},
            "in a way that ba can't apply",
        ),
        (lambda asked: {"behavior": "deny", "message": "Not today."}, "Not today."),
        (lambda asked: {"nonsense": 1}, "denied this"),
        (
            lambda asked: {"behavior": "allow", "updatedPermissions": asked["permission_suggestions"]},
            "(session, write_file(a.txt))",
        ),
        (
            lambda asked: {
                "behavior": "allow",
                "updatedPermissions": [{**asked["permission_suggestions"][0], "destination": "localSettings"}],
            },
            "(always, write_file(a.txt))",
        ),
        (
            lambda asked: {
                "behavior": "allow",
                "updatedPermissions": [{"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Bash"}]}],
            },
            "(once, None)",
        ),
    ],
)
async def test_the_program_answers_approvals(answer: Callable[[Line], Line], output: str):
    ran = await asked(answer, rule="write_file(a.txt)")
    assert output in ran.program.of("user")[0]["message"]["content"][0]["content"]
    (request,) = ran.program.of("control_request")
    assert request["request"]["tool_name"] == "Write"
    assert request["request"]["permission_suggestions"][0]["rules"] == [{"toolName": "Write", "ruleContent": "a.txt"}]


async def test_changes_of_permissions_that_are_not_ours_are_told():
    mode = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
    ran = await asked(lambda asked: {"behavior": "allow", "updatedPermissions": [mode]})
    assert "type setMode was not applied" in ran.err


async def test_a_denial_that_interrupts_ends_the_turn_and_is_told():
    ran = await asked(lambda asked: {"behavior": "deny", "message": "No.", "interrupt": True})
    result = result_of(ran)
    assert (ran.code, result["subtype"], result["terminal_reason"]) == (1, "error_during_execution", "aborted_tools")
    assert len(result["permission_denials"]) == 1
    assert not ran.program.of("control_cancel_request")


@pytest.mark.parametrize("mode", ["default", "dontAsk"])
async def test_nobody_is_asked_once_input_has_ended_or_in_mode_dont_ask(mode: str):
    program = Program(turns=1 if mode == "dontAsk" else 9)
    program.send(control("set_permission_mode", mode=mode), prompt())
    if mode == "default":
        program.close()
    ran = await hosted(program, WRITES, says("Well."), asks=True)
    assert "Nobody is here" in program.of("user")[0]["message"]["content"][0]["content"]
    assert ran.code == 0


async def test_a_turn_is_interrupted_and_the_session_goes_on():
    async def stuck(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        yield TextDelta("Half")
        await asyncio.Event().wait()

    def react(line: Line, program: Program) -> None:
        if (
            line["type"] == "stream_event"
            and line["event"]["type"] == "content_block_delta"
            and not program.of("result")
        ):
            program.send(control("interrupt"), prompt("again"))

    program = Program(react, turns=2)
    program.send(prompt())
    ran = await hosted(program, stuck, says("Two."), partial=True)
    first, second = program.of("result")
    assert (first["subtype"], first["is_error"], first["terminal_reason"]) == (
        "error_during_execution",
        True,
        "aborted_streaming",
    )
    assert program.of("user")[0]["message"]["content"] == [{"type": "text", "text": "[Request interrupted by user]"}]
    assert (second["result"], ran.code) == ("Two.", 0)


async def test_an_interrupt_right_behind_a_prompt_is_not_lost():
    lines = (control("interrupt"), prompt("first"), control("interrupt"), prompt("second"))
    ran = await talked(*lines, steps=(says("One."), says("Two.")), turns=2)
    first, second = ran.program.of("result")
    assert first["subtype"] == "error_during_execution"
    assert second["subtype"] == "success"


async def test_a_question_that_an_interrupt_leaves_open_is_withdrawn():
    def react(line: Line, program: Program) -> None:
        if line["type"] == "control_request":
            program.send(control("interrupt"))

    program = Program(react)
    program.send(prompt())
    await hosted(program, WRITES, asks=True)
    (request,), (cancel,) = program.of("control_request"), program.of("control_cancel_request")
    assert request["request_id"] == cancel["request_id"]


async def test_mode_and_model_are_changed():
    lines = (
        control("set_permission_mode", "m", mode="acceptEdits"),
        control("set_model", "n", model="test/model"),
        prompt(),
    )
    ran = await talked(*lines, steps=(says("One."),))
    replies = {line["response"]["request_id"]: line["response"] for line in ran.program.of("control_response")}
    assert replies["m"] == {"subtype": "success", "request_id": "m", "response": {"mode": "acceptEdits"}}
    assert replies["n"] == {"subtype": "success", "request_id": "n"}
    (status,) = ran.program.of("system", "status")
    assert status["permissionMode"] == "acceptEdits"
    assert ran.program.of("system", "init")[0]["permissionMode"] == "acceptEdits"
    assert ran.talk.permissions.mode == "accept-edits"


async def test_requests_that_ba_does_not_know_are_refused_by_name():
    lines = (
        control("initialize", "a", hooks={"PreToolUse": [{"hookCallbackIds": ["h"]}]}),
        control("rewind_files", "b"),
        control("set_permission_mode", "c", mode="wild"),
        control("initialize", "d", hooks=None, agents={}),
    )
    ran = await talked(*lines, turns=0)
    replies = {line["response"]["request_id"]: line["response"] for line in ran.program.of("control_response")}
    assert replies["a"]["subtype"] == "error", "a guard that never runs must not be taken silently"
    assert "hooks" in replies["a"]["error"]
    assert replies["b"]["error"] == "Unsupported control request subtype: rewind_files"
    assert "'wild'" in replies["c"]["error"]
    assert replies["d"]["response"]["models"][0]["value"] == "test/model"
    assert ran.code == 0


async def test_nothing_runs_after_a_refused_beginning():
    ran = await talked(
        control("initialize", hooks={"PreToolUse": []} | {"Stop": [{}]}), prompt(), steps=(says("One."),)
    )
    result = result_of(ran)
    assert (result["subtype"], ran.code, ran.program.of("assistant")) == ("error_during_execution", 1, [])
    assert "can't take hooks" in result["errors"][0]


@pytest.mark.parametrize("first", [True, False])
async def test_a_system_prompt_counts_only_at_the_beginning(first: bool):
    request = control("initialize", systemPrompt=["Be brief."])
    ran = await talked(request, prompt(), steps=(says("One."),), opening=request["request"] if first else {})
    assert ran.program.of("control_response")[0]["response"]["subtype"] == ("success" if first else "error")


@pytest.mark.parametrize(
    ("line", "said", "code"),
    [
        (b"{nonsense", "Line 1 of the input was skipped: not JSON", 1),
        (b"\xff\xfe", "not JSON", 1),
        (b"[" * 5_000, "not JSON", 1),
        (b"7", "a line is a JSON object", 1),
        (b"{}", "a line has a", 1),
        (b'{"type":"wild"}', "lines of type \u201cwild\u201d are not known", 0),
        (b'{"type":"user"}', "a user line has an object", 1),
        (b'{"type":"user","message":{"role":"assistant","content":"x"}}', "the role", 1),
        (b'{"type":"user","message":{"content":7}}', "a string or a list of blocks", 1),
        (b'{"type":"user","message":{"content":[{"type":"tool_use"}]}}', "of type \u201ctool_use\u201d", 1),
        (b'{"type":"control_request","request":{}}', "request_id", 1),
        (b'{"type":"control_response","response":{}}', "request_id", 1),
        (b'{"type":"keep_alive"}', "", 0),
        (b"  ", "", 0),
    ],
)
async def test_a_wrong_line_is_told_and_the_session_stays_intact(line: bytes, said: str, code: int):
    ran = await talked(line, prompt("first"), steps=(says("One."),))
    assert (result_of(ran)["result"], ran.code) == ("One.", code)
    assert said in ran.err
    assert len(ran.err.splitlines()) == (1 if said else 0)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"type": "base64", "media_type": "image/bmp", "data": ""}, "an image is one of"),
        ({"type": "base64", "media_type": "image/png", "data": "%%"}, "not base64"),
        ({"type": "url", "url": "file:///etc/passwd"}, "can't be part of a prompt"),
    ],
)
async def test_a_wrong_picture_is_told(source: Line, said: str):
    ran = await talked(prompt([{"type": "image", "source": source}]), turns=0)
    assert said in ran.err


async def test_an_empty_prompt_is_a_result_with_an_error():
    ran = await talked(prompt(" "), prompt("first"), steps=(says("One."),), turns=2)
    first, second = ran.program.of("result")
    assert first["errors"] == ["The prompt is empty. Type what you want to know or have done."]
    assert (second["result"], ran.code) == ("One.", 0)


async def test_a_model_without_a_key_is_told_before_anything_is_sent():
    ran = await talked(prompt(), missing="No API key.")
    assert (result_of(ran)["subtype"], result_of(ran)["errors"], ran.code) == (
        "error_during_execution",
        ["No API key."],
        1,
    )


async def test_a_model_that_fails_speaks_as_claude_code_does():
    ran = await talked(prompt(), steps=(AuthFailed("The key was refused (401).", "Check it."),))
    (answer,) = ran.program.of("assistant")
    assert (answer["error"], answer["message"]["model"]) == ("authentication_failed", "<synthetic>")
    result = result_of(ran)
    assert (result["subtype"], result["is_error"], ran.code) == ("success", True, 1)
    assert result["result"] == answer["message"]["content"][0]["text"] == "The key was refused (401). Check it."


async def test_the_limit_of_steps_is_error_max_turns():
    ran = await talked(prompt(), steps=(*(says(f"s{n}", ("none", {"n": n})) for n in range(5)), says("So far.")))
    result = result_of(ran)
    assert (result["subtype"], result["is_error"], result["terminal_reason"]) == ("error_max_turns", True, "max_turns")
    assert "result" not in result
    assert "limit of 5 steps" in result["errors"][0]
    assert ran.code == 1


async def test_an_answer_that_was_cut_is_an_error_with_its_words():
    ran = await talked(prompt(), steps=tuple(says("Words.", stop="max_tokens") for _ in range(4)))
    result = result_of(ran)
    assert (result["is_error"], result["stop_reason"], result["result"]) == (True, "max_tokens", "Words." * 4)


async def test_a_time_limit_ends_the_run():
    async def stuck(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        yield TextDelta("Half")
        await asyncio.Event().wait()

    ran = await talked(prompt(), steps=(stuck,), timeout=0.3)
    assert ran.code == 1
    assert "Stopped at the time limit." in ran.err


async def test_no_prompt_at_all_is_no_error():
    ran = await talked(turns=0)
    assert (ran.code, ran.program.lines) == (0, [])


async def test_prompts_beyond_max_turns_are_refused():
    ran = await talked(prompt("One"), prompt("Two"), steps=(says("First."), says("Second.")), turns=2, max_turns=1)
    first, second = ran.program.of("result")
    assert (first["subtype"], second["subtype"], second["is_error"]) == ("success", "error_max_turns", True)
    assert second["errors"] == [
        "This call of ba has answered 1 prompt, its limit. Start another call with --resume, or raise max_turns."
    ]
    assert ran.code == 1
