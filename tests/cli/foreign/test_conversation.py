"""``ba`` as a program that other programs drive: real tools, standard input, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import ModelServer
from tests.program import Program

STEPS = """
steps:
  - {say: Looking., calls: [{tool: read_file, args: {path: sales.csv}}, {tool: shell, args: {command: touch made}}]}
  - {say: One row.}
  - {say: Two.}
"""
SDK = ("--output-format", "stream-json", "--verbose", "--system-prompt", "", "--input-format", "stream-json")
"""What the Claude Agent SDK passes."""


@pytest.fixture
def ba(tmp_path: Path) -> Program:
    for name in ("work", "home"):
        (tmp_path / name).mkdir()
    (tmp_path / "work" / "steps.yaml").write_text(STEPS)
    (tmp_path / "work" / "sales.csv").write_text("region,amount\nnorth,12\n")
    return Program(tmp_path / "work", tmp_path / "home")


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def user(content: str) -> str:
    return json.dumps({"type": "user", "message": {"role": "user", "content": content}}) + "\n"


def test_one_prompt_and_the_lines_of_claude_code(ba: Program):
    done = ba.here("-p", "-m", "scripted:steps.yaml", "--output-format", "claude-stream-json", "how many?")
    told = lines(done.stdout)
    assert [line["type"] for line in told] == [
        "system",
        "assistant",
        "assistant",
        "assistant",
        "user",
        "user",
        "assistant",
        "result",
    ]
    init, result = told[0], told[-1]
    assert {"Read", "Bash", "Edit", "Write", "TodoWrite"} <= set(init["tools"])
    assert "data-analysis" in init["slash_commands"]
    assert (result["result"], result["num_turns"]) == ("One row.", 2)
    assert [each["tool_name"] for each in result["permission_denials"]] == ["Bash"]
    assert told[4]["tool_use_result"]["file"]["filePath"] == str(ba.folder / "sales.csv")
    assert done.returncode == 0, "as Claude Code ends after a denial"
    assert not (ba.folder / "made").exists()


def test_a_conversation_over_standard_input(ba: Program):
    typed = user("first") + "{nonsense\n" + user("second").rstrip("\n")
    done = ba.here("-m", "scripted:steps.yaml", *SDK, "--allowedTools", "Bash(touch made)", stdin=typed)
    results = [line for line in lines(done.stdout) if line["type"] == "result"]
    assert [line["result"] for line in results] == ["One row.", "Two."]
    assert len({line["session_id"] for line in results}) == 1
    assert (ba.folder / "made").exists()
    assert "Line 2 of the input was skipped" in done.stderr
    assert done.returncode == 1
    (listed,) = ba.json("sessions", "list", "--json")
    assert listed["id"] == results[0]["session_id"]


def test_a_program_that_answers_approvals(ba: Program):
    process = ba.start("-m", "scripted:steps.yaml", *SDK, "--permission-prompt-tool", "stdio", stdin=-1)
    assert process.stdin
    assert process.stdout
    process.stdin.write(user("go"))
    process.stdin.flush()
    for text in process.stdout:
        line = json.loads(text)
        if line["type"] == "control_request":
            assert line["request"]["tool_name"] == "Bash"
            allowed = {"behavior": "allow", "updatedInput": line["request"]["input"]}
            answer = {"subtype": "success", "request_id": line["request_id"], "response": allowed}
            process.stdin.write(json.dumps({"type": "control_response", "response": answer}) + "\n")
            process.stdin.flush()
        if line["type"] == "result":
            break
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")
    assert (ba.folder / "made").exists()


def test_the_prompt_and_the_limits_that_a_program_names(ba: Program):
    call = ScriptedCall("read_file", {"path": "sales.csv"})
    with ModelServer([Step(say="Looking.", calls=(call,)), Step(say="One row.")]) as server:
        env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k-test-1234"}
        program = Program(ba.folder, ba.home, env)
        args = ("--max-turns", "1", "--system-prompt", "Be brief.", "--output-format", "claude-stream-json")
        done = program.here("-p", "-m", "anthropic/claude-sonnet-5", *args, "hi")
    result = lines(done.stdout)[-1]
    assert (result["subtype"], done.returncode) == ("error_max_turns", 1)
    assert lines(done.stdout)[0]["apiKeySource"] == "ANTHROPIC_API_KEY"
    system = json.dumps(server.requests[0].json["system"])
    assert "Be brief." in system
    assert "You are ba" not in system


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--input-format", "stream-json", "hi"), "Leave the prompt out."),
        (("-p", "--input-format", "stream-json", "--output-format", "json"), "can't be answered in json"),
        (("-p", "--permission-prompt-tool", "stdio", "hi"), "Add --input-format stream-json."),
        (("-p", "--replay-user-messages", "hi"), "Add --input-format stream-json."),
        (
            ("-p", "--include-partial-messages", "-m", "scripted:steps.yaml", "hi"),
            "Add --output-format claude-stream-json.",
        ),
        (("-p", "--system-prompt", "a", "--system-prompt-file", "b", "hi"), "exclude each other"),
    ],
)
def test_flags_that_do_not_go_together(ba: Program, args: tuple[str, ...], said: str):
    done = ba.here(*args)
    assert said in done.stderr
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


def test_a_session_that_is_not_there_is_a_result_too(ba: Program):
    done = ba.here("-p", "-r", "gone", "-m", "scripted:steps.yaml", "--output-format", "claude-stream-json", "hi")
    (result,) = lines(done.stdout)
    assert (result["subtype"], result["is_error"], done.returncode) == ("error_during_execution", True, 1)
    assert "gone" in result["errors"][0]


def test_a_system_prompt_in_words_is_for_one_start_alone(ba: Program):
    config = ba.home / "ba" / "config.yaml"
    config.parent.mkdir()
    config.write_text("system_prompt: Obey.\n")
    done = ba.here("-p", "-m", "scripted:steps.yaml", "hi")
    assert done.returncode == 1
    assert "works only as a flag" in done.stderr


def test_the_first_line_may_bring_the_system_prompt(ba: Program):
    begin = {"subtype": "initialize", "systemPrompt": ["Be brief."], "appendSystemPrompt": "Be kind."}
    typed = json.dumps({"type": "control_request", "request_id": "r", "request": begin}) + "\n" + user("hi")
    with ModelServer([Step(say="Hello.")]) as server:
        env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k-test-1234"}
        program = Program(ba.folder, ba.home, env)
        done = program.here("-m", "anthropic/claude-sonnet-5", "--input-format", "stream-json", stdin=typed)
    assert (done.returncode, lines(done.stdout)[-1]["result"]) == (0, "Hello.")
    system = json.dumps(server.requests[0].json["system"])
    assert "Be brief." in system
    assert "Be kind." in system
