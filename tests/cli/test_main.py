"""The command line as people and scripts use it: routing, help, errors in one line, exit codes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import pytest
import typer

import ba_tui
from ba_tui import __version__
from ba_tui.cli.commands import shell_commands
from ba_tui.cli.main import route, run
from ba_tui.cli.streams import print_line, say
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import ModelServer
from tests.loopback.replies import Answer, Status
from tests.program import Program

PACKAGE = Path(ba_tui.__file__).parent
HELLO = "steps: [{say: Hello there., usage: {input: 10, output: 3}}]\n"


@pytest.fixture
def ba(tmp_path: Path) -> Program:
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "work" / "hello.yaml").write_text(HELLO)
    return Program(tmp_path / "work", tmp_path / "home")


@pytest.mark.parametrize(
    ("argv", "routed"),
    [
        (["sessions", "list"], ["sessions", "list"]),
        (["fix", "it"], ["chat", "fix", "it"]),
        (["-p", "sessions"], ["chat", "-p", "sessions"]),
        (["--", "sessions"], ["chat", "--", "sessions"]),
        (["-r"], ["chat", "--resume=pick"]),
        (["-r", "-p", "x"], ["chat", "--resume=pick", "-p", "x"]),
        (["-r", "parser"], ["chat", "-r", "parser"]),
        (["--help"], ["--help"]),
        (["logs", "--help"], ["--help"]),
        (["-p", "-h"], ["--help"]),
        (["--", "-h"], ["chat", "--", "-h"]),
    ],
)
def test_a_first_word_that_is_no_command_is_a_prompt(argv: list[str], routed: list[str]):
    assert route(argv) == routed


def test_a_closed_sessions_folder_stops_no_work(ba: Program):
    if os.geteuid() == 0:
        pytest.skip("root may look everywhere")
    sessions = ba.home / "ba" / "sessions"
    sessions.mkdir(parents=True)
    sessions.chmod(0)
    done = ba.here("-p", "-m", "scripted:hello.yaml", "hi")
    sessions.chmod(0o700)
    assert (done.returncode, done.stdout) == (0, "Hello there.\n")
    assert "cannot be saved" in done.stderr


def test_version(ba: Program):
    assert ba.run("--version").stdout == f"ba {__version__}\n"


def test_the_version_is_printed_from_anywhere_in_the_line(ba: Program):
    done = ba.here("-p", "hi", "--version")
    assert (done.returncode, done.stdout) == (0, f"ba {__version__}\n")


def test_help_lists_flags_commands_and_exit_codes(ba: Program):
    shown = ba.here("--help").stdout
    for name in (*shell_commands(), "--print", "--resume", "--model", "--allow", "Exit codes", "Examples"):
        assert name in shown
    assert "\n  chat " not in shown


def test_the_list_of_commands_says_what_the_help_of_each_says():
    for row in (row for row in shell_commands().values() if not row.hidden):
        described = resolve_name(row.cli).__doc__ or ""
        assert row.help
        assert isinstance(resolve_name(row.cli), typer.Typer) or " ".join(described.split()).startswith(row.help)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("ba se", "sessions"),
        ("ba --mod", "--model"),
        ("ba -p --mod", "--model"),
        ("ba --effort me", "medium"),
        ("ba sessions li", "list"),
    ],
)
def test_the_shell_completes_commands_and_options(ba: Program, words: str, found: str):
    env = {"_BA_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    assert found in Program(ba.folder, ba.home, env).run().stdout.split()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--modle", "x", "hi"), "Unknown option --modle. Did you mean --model?"),
        (("sessions", "lst"), "There is no command 'lst'. Did you mean ba sessions list?"),
        (("sessions", "remove"), "Did you mean ba sessions delete?"),
        (("skills", "delete"), "Did you mean ba skills remove?"),
        (("sessions", "frobnicate"), "See ba sessions --help."),
        (("mcp", "lst"), "Did you mean ba mcp list?"),
        (("login",), "type /setup"),
        (("update",), "uv, pipx or pip"),
        (("memories",), "See ba memory --help"),
        (("subagents",), "ba agents list shows the agents"),
        (("exec", "fix the tests"), 'ba -p "…" prints one answer.'),
        (("--yolo",), "Unknown option --yolo. Use --permission-mode auto"),
        (("--dangerously-skip-permissions", "hi"), "Not a terminal"),
        (("--full-auto", "hi"), "--permission-mode auto"),
        (("--fork", "hi"), "--fork needs a session to resume. Add -c, or -r ID."),
        (("--all", "hi"), "--all needs a session to resume."),
        (("-p", "--replay-user-messages", "hi"), "Add --input-format stream-json."),
        (("-p", "--max-turns", "0", "hi"), "'--max-loops': expected at least 1."),
        (("run", "--max-turns", "3"), "See ba run --help."),
        (("update", "the", "readme"), "Not a terminal"),
        (("help", "me", "with", "git"), "Not a terminal"),
        (("sesions", "list"), "Did you mean ba sessions? To send it: ba -- sesions list"),
        (("-p", "-m", "nowhere/x", "hi"), "nowhere"),
        (("-p", "-m", "scripted:gone.yaml", "hi"), "gone.yaml"),
        (("-p", "-m", "scripted:hello.yaml"), "The prompt is empty."),
        (("-p", "-m", "scripted:hello.yaml", "-c", "hi"), "No session"),
        (("-p", "-r", "-m", "scripted:hello.yaml", "hi"), "picker"),
        (("-p", "hi"), "ANTHROPIC_API_KEY"),
        (("--cwd", "/nowhere/at/all", "hi"), "no folder"),
        (("hi",), "Not a terminal"),
        (("-p", "--permission-mode", "wild", "hi"), "'--permission-mode': 'wild' is not one of"),
        (("permissions", "check", "shell", "ls"), "See ba permissions check --help."),
        (("-p", "--max-loops", "0", "hi"), "'--max-loops': expected at least 1. See ba --help."),
        (("sessions", "search", "--limit", "x", "hi"), "expected a whole number. See ba sessions search --help."),
        (("sessions", "list", "--zzzz"), "Unknown option --zzzz. See ba sessions list --help."),
        (("sessions", "list", "more", "words"), "Unexpected: more words."),
        (("sessions", "show", "a\nb"), "There is no session “a␤b”."),
        (("-p", "--fork", "hi"), "Add -c, or -r ID."),
        (("-p", "--add-dir", "gone", "hi"), "There is no folder gone."),
        (("-p", " "), "The prompt is empty."),
        (("trust", "--show", "--revoke"), "Give one of"),
        (("-p", "--allow", "shell(", "-m", "scripted:hello.yaml", "hi"), "shell("),
        (("-p", "--deny", "shel(ls)", "-m", "scripted:hello.yaml", "hi"), "no tool 'shel'; did you mean 'shell'?"),
    ],
)
def test_usage_errors_are_one_line_and_exit_1(ba: Program, args: tuple[str, ...], said: str):
    done = ba.here(*args)
    assert said in done.stderr
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_a_group_alone_shows_its_commands_whole(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["sessions"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("Usage: ba sessions ")
    assert "..." not in shown.partition("Commands:")[2]
    assert "new id." in shown


def test_help_names_arguments_without_the_types_behind_them(capsys: pytest.CaptureFixture[str]):
    run(["sessions", "import", "--help"])
    shown = capsys.readouterr().out
    assert shown.startswith("Usage: ba sessions import [OPTIONS] FILE...\n")
    assert "<" not in shown


def test_completion_is_printed_for_a_shell(ba: Program):
    # The shell is known by the process that started ba, so that is a real one here, however the suite was started.
    line = f"{shlex.quote(sys.executable)} -m ba_tui --show-completion; exit $?"
    shown = subprocess.run(
        ["bash", "-c", line], cwd=ba.folder, env=ba.environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert shown.returncode == 0
    assert "complete -o default -F _ba_completion ba" in shown.stdout


def test_a_printed_answer_and_its_session(ba: Program):
    done = ba.run("-p", "-m", "scripted:hello.yaml", "hi", "there")
    assert (done.returncode, done.stdout) == (0, "Hello there.\n")
    (listed,) = ba.json("sessions", "list", "--json")
    assert listed["title"] == "hi there"


def test_stdin_joins_the_prompt(ba: Program):
    done = ba.here("-p", "-m", "scripted:hello.yaml", "count these", stdin="one\ntwo\n")
    assert done.returncode == 0
    started = next(event for event in ba.events() if event["type"] == "turn_started")
    assert started["prompt"]["blocks"][0]["text"] == "count these\n\none\ntwo\n"


def test_bytes_that_are_no_text_do_not_stop_it(ba: Program):
    done = ba.here("-p", "-m", "scripted:hello.yaml", stdin="a\0b\x1b[31m")
    assert done.returncode == 0


def test_a_rule_about_no_tool_is_told(ba: Program):
    config = ba.home / "ba" / "config.yaml"
    config.parent.mkdir()
    config.write_text("permissions:\n  ask: [grepp, mcp__x__y, mcp.x, 'web_*', '@network']\n")
    done = ba.here("-p", "-m", "scripted:hello.yaml", "--deny", "mcp__there__thing", "hi")
    assert (done.returncode, done.stdout) == (0, "Hello there.\n")
    said = "permission rule 'grepp': there is no tool 'grepp'; did you mean 'grep'? See ba tools list."
    assert done.stderr == f"ba: {config}:2: {said}\n"
    done = ba.here("-p", "-m", "scripted:hello.yaml", "--deny", "shel(x)", "hi")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("there is no tool 'shel'; did you mean 'shell'? See ba tools list.\n")


def test_a_broken_config_file_names_file_line_key_and_expectation(ba: Program):
    config = ba.home / "ba" / "config.yaml"
    config.parent.mkdir()
    config.write_text("theme: dark\nmax_loops: many\n")
    done = ba.here("-p", "-m", "scripted:hello.yaml", "hi")
    assert done.returncode == 1
    assert f"{config}:2" in done.stderr
    assert "max_loops" in done.stderr
    assert config.read_text() == "theme: dark\nmax_loops: many\n"


def test_continue_finds_the_last_session_and_fork_leaves_it_alone(ba: Program):
    (ba.folder / "two.yaml").write_text("steps: [{say: One.}, {say: Two.}, {say: Three.}]\n")
    first = ba.json("-p", "-m", "scripted:two.yaml", "--output-format", "json", "first")
    second = ba.json("-p", "-c", "--output-format", "json", "second")
    forked = ba.json("-p", "-c", "--fork", "--output-format", "json", "third")
    assert [first["result"], second["result"], forked["result"]] == ["One.", "Two.", "Three."]
    assert first["session_id"] == second["session_id"] != forked["session_id"]


def test_damage_in_the_session_that_goes_on_is_told(ba: Program):
    (ba.folder / "two.yaml").write_text("steps: [{say: One.}, {say: Two.}]\n")
    ba.here("-p", "-m", "scripted:two.yaml", "first")
    (file,) = ba.journals()
    head, rest = file.read_bytes().split(b"\n", 1)
    file.write_bytes(head + b"\nGARBAGE\n" + rest + b'{"type":"not')
    done = ba.here("-p", "-c", "second")
    assert (done.returncode, done.stdout) == (0, "Two.\n")
    assert f"ba: 1 damaged line of this session could not be read. Left as found in {file}." in done.stderr
    assert "ba: The last entry of this session was cut off" in done.stderr


def test_what_would_ask_is_denied_and_listed_with_exit_4(ba: Program):
    steps = "steps: [{calls: [{tool: shell, args: {command: touch made}}]}, {say: I could not.}]\n"
    (ba.folder / "shell.yaml").write_text(steps)
    done = ba.here("-p", "-m", "scripted:shell.yaml", "--output-format", "json", "go")
    report = json.loads(done.stdout)
    assert done.returncode == 4
    assert report["denied"][0]["tool"] == "shell"
    assert not (ba.folder / "made").exists()
    call = "{calls: [{tool: shell, args: {command: touch made}}]}"
    (ba.folder / "shell.yaml").write_text(f"steps: [{call}, {call}, {call}, {{say: No.}}]\n")
    done = ba.here("-p", "-m", "scripted:shell.yaml", "go")
    assert done.returncode == 4, "stopped for what was denied, not for its length"
    assert "Stopped after 3 identical calls" in done.stderr


def test_equal_calls_of_a_tool_for_looking_again_stop_a_run(ba: Program):
    call = "{calls: [{tool: todo_write, args: {todos: [{content: Go, status: pending}]}}]}"
    (ba.folder / "todo.yaml").write_text(f"steps: [{call}, {call}, {call}, {call}, {{say: No.}}]\n")
    done = ba.here("-p", "-m", "scripted:todo.yaml", "go")
    assert "Stopped after 3 identical calls of todo_write" in done.stderr


def test_an_allowed_command_runs(ba: Program):
    steps = "steps: [{calls: [{tool: shell, args: {command: touch made}}]}, {say: Done.}]\n"
    (ba.folder / "shell.yaml").write_text(steps)
    done = ba.here("-p", "-m", "scripted:shell.yaml", "--allow", "shell(touch made)", "go")
    assert done.returncode == 0
    assert (ba.folder / "made").exists()


def test_two_vendors_over_http_with_tools(ba: Program):
    (ba.folder / "sales.csv").write_text("region,amount\nnorth,12\n")
    call = ScriptedCall("read_file", {"path": "sales.csv"})
    for vendor in ("anthropic", "openai"):
        with ModelServer([Step(say="Looking.", calls=(call,)), Step(say="One row.")]) as server:
            url = server.url if vendor == "anthropic" else server.openai_url
            env = {f"{vendor.upper()}_BASE_URL": url, f"{vendor.upper()}_API_KEY": "k-test-1234"}
            program = Program(ba.folder, ba.home, env)
            report = program.json("-p", "-m", f"{vendor}/test-model", "--output-format", "json", "how many rows?")
        assert report["result"] == "One row."
        assert report["tool_calls"][0]["name"] == "read_file"
        assert "north,12" in json.dumps(server.requests[1].json)
        session = report["session_id"]
        assert program.here("sessions", "request", session, "2").stdout.encode() == server.requests[1].body
        assert [each["number"] for each in program.json("sessions", "request", session, "--json")] == [1, 2]
        assert "One row." in program.here("sessions", "request", session, "2", "--response").stdout
        assert "has requests 1 to 2, not 3" in program.here("sessions", "request", session, "3").stderr
        assert "k-test-1234" not in "".join(path.read_text() for path in program.journals())


def test_a_refused_key_is_exit_2_and_says_which_variable(ba: Program):
    with ModelServer([Status(401)]) as server:
        env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k-test-1234"}
        done = Program(ba.folder, ba.home, env).here("-p", "hi")
    assert done.returncode == 2
    assert "ANTHROPIC_API_KEY" in done.stderr
    assert "k-test-1234" not in done.stdout + done.stderr


def test_ctrl_c_ends_in_order_with_130(ba: Program):
    (ba.folder / "slow.yaml").write_text("delay: 30\nsteps: [{say: A long answer}]\n")
    process = ba.start("-p", "-m", "scripted:slow.yaml", "--output-format", "stream-json", "go")
    assert process.stdout
    assert json.loads(process.stdout.readline())["type"] == "init"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 130
    assert json.loads(out.splitlines()[-1])["stop_reason"] == "cancelled"
    assert ba.events()[-1]["type"] == "turn_ended"


def test_ctrl_c_while_it_starts_is_as_quiet(ba: Program):
    (ba.folder / "yaml.py").write_text("raise KeyboardInterrupt\n")
    done = ba.run("-p", "hi")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_reader_that_goes_away_is_no_error(ba: Program):
    with ba.start("-p", "-m", "scripted:hello.yaml", "--output-format", "stream-json", "hi") as process:
        assert process.stdout
        process.stdout.close()
        assert process.stderr
        assert "Traceback" not in process.stderr.read()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_an_output_that_takes_nothing_is_said_in_whole_sentences(ba: Program):
    with Path("/dev/full").open("w") as full:
        done = ba.run("-p", "-m", "scripted:hello.yaml", "hi", stdout=full)
    assert done.returncode == 2
    full = "The output can't be written: No space left on device."
    assert done.stderr == f"ba: {full} Make room, or write somewhere else.\n"


def test_a_stream_cut_for_good_keeps_the_words_and_says_so(ba: Program):
    step = Step(say="The first half of a long answer that never ends.")
    with ModelServer([], last=Answer(step, cut=0.7)) as server:
        env = {"OPENAI_BASE_URL": server.openai_url, "BA_MODEL": "openai/test"}
        done = Program(ba.folder, ba.home, env).here("-p", "hi", "--output-format", "json", "--timeout", "4")
    report = json.loads(done.stdout)
    assert report["result"].startswith("The first")
    assert done.returncode in {2, 3}


def test_an_error_about_foreign_text_holds_no_control(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sessions", "show", "\x1b]0;title\x07\x9b2J\u202ename"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("ba: ")
    assert said.replace("\n", "").isprintable()


def test_lines_of_commands_hold_no_control(capsys: pytest.CaptureFixture[str]) -> None:
    text = "a\x1b[2Jb \x9d52;c;x\x9c \udcff\tc\nd"
    print_line(text)
    say(text)
    assert capsys.readouterr() == ("ab  \\udcff\tc\nd\n", "ba: ab  \\udcff c␤d\n")


@pytest.mark.parametrize("args", [("config", "schema"), ("--help",)])
def test_a_reader_that_went_away_is_no_error(ba: Program, args: tuple[str, ...]):
    with ba.start(*args) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert (process.stderr.read(), process.wait(30)) == ("", 0)


def test_streams_that_were_closed_and_a_locale_without_letters_lose_nothing(ba: Program):
    script = 'exec "$0" -m ba_tui -p -m scripted:hello.yaml "grüße — 日本" <&- >&-'
    bare = {**ba.environment, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(["sh", "-c", script, sys.executable], cwd=ba.folder, env=bare, check=False, timeout=30)
    assert done.returncode == 0
    (journal,) = ba.journals()
    assert "grüße — 日本" in journal.read_text(encoding="utf-8")


COLLECTS = """
import gc, sys, weakref
from ba_tui.__main__ import main

class Knot: ...

def tie():
    knot = Knot()
    knot.self = knot
    return weakref.ref(knot)

code = main()
assert gc.isenabled() and code == 0, code
first, many = tie(), [[] for _ in range(200_000)]  # The first collection sets aside what is there.
later = tie()
many = [[] for _ in range(20_000)]
assert later() is None
"""


@pytest.mark.parametrize("args", [("run", "--help"), ("tokens", "hello.yaml"), ("tools", "list")])
def test_garbage_is_collected_in_every_command(ba: Program, args: tuple[str, ...]):
    command = [sys.executable, "-c", COLLECTS, *args]
    done = subprocess.run(
        command, cwd=ba.folder, env=ba.environment, capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 0, done.stderr


def test_nothing_turns_the_garbage_collector_off():
    assert not [path for path in PACKAGE.rglob("*.py") if "gc.disable(" in path.read_text()]
