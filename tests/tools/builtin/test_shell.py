"""The shell with real processes: output, folder, exit code, and nothing left behind whatever a command does."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest

from ba_tui.core.events import ToolProgress
from ba_tui.core.messages import ToolUse
from ba_tui.core.results import CommandText, StateChange
from ba_tui.core.tool import Call
from ba_tui.processes.children import Process
from ba_tui.processes.values import Program
from ba_tui.tools.shells import Shell
from tests.tools.conftest import CHECKOUT, Harness
from tests.tools.running.processes import all_gone, another, printed, tagged, until_printed, word

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends what detached itself")


DETACHING = """
import os, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
time.sleep(60)
"""


@pytest.fixture
def tag() -> Iterator[str]:
    """A word for the environment of a command, by which its processes are found again; none may be left."""
    made = word()
    yield made
    for process in tagged(made):
        process.kill()


async def test_output_exit_code_and_folder(harness: Harness) -> None:
    (harness.root / "sub").mkdir()
    result = await harness.run("shell", command="echo out; echo err >&2; cd sub; exit 3")
    assert result.text == "out\nerr\n[exit code 3; the folder is now sub]"
    assert result.display == CommandText("echo out; echo err >&2; cd sub; exit 3", ".", "out\nerr\n", 3)
    assert result.summary == "exit 3"
    assert result.changes == StateChange(cwd=str(harness.root / "sub"))
    assert (await harness.run("shell", command="pwd")).text == str(harness.root / "sub")
    assert (await harness.run("shell", command="exit 0")).text == "(no output)"


@pytest.mark.parametrize(
    ("command", "summary"),
    [
        ("sh -c 'echo one; exit 1' | tail -1", "exit 0 · `sh` exited 1"),
        ("cd sub && false | (exit 3) | cat", "exit 0 · `false` exited 1 · part 2 of the pipe exited 3"),
        ("IFS=:; set -u; false | true", "exit 0 · `false` exited 1"),
        ("yes | head -1 >/dev/null", "exit 0"),
        ("echo a | grep b | wc -l", "exit 0"),
        ("grep a nowhere | wc -l", "exit 0 · `grep` exited 2"),
        ("false | true; echo done", "exit 0 · `false` exited 1"),
        ("false | true && echo done", "exit 0 · `false` exited 1"),
        ("{ sh -c 'exit 5'; echo done; }", "exit 0 · `sh` exited 5"),
        ("X=1 /bin/sh -c 'exit 5'; echo done", "exit 0 · `sh` exited 5"),
        ("set -u; for i in 1 2; do false | cat; done; echo done", "exit 0 · `false` exited 1"),
        ("false | false", "exit 1 · `false` exited 1"),
        ("false || true", "exit 0"),
        ("if ! false; then echo; fi", "exit 0"),
        ("if echo a | grep -q b; then echo; fi", "exit 0"),
        ("found=$(grep root nowhere); echo", "exit 0 · `grep` exited 2"),
        ("found=$(echo | grep b); echo", "exit 0"),
        ("i=0; let i++; ((i -= 1)); [ -f nowhere ]; read x </dev/null; echo", "exit 0"),
        ("yes | head -1 >/dev/null; echo", "exit 0"),
        ("cd nowhere && grep x y", "exit 1"),
        ("echo | grep a; cd nowhere && ls", "exit 1"),
        ("echo | grep a", "exit 1 · no match"),
        ("grep a /dev/null", "exit 1 · no match"),
        ("echo a | diff - /dev/null >/dev/null", "exit 1 · they differ"),
        ("[ -f nowhere ]", "exit 1"),
        ("set -o pipefail; false | true", "exit 1 · `false` exited 1"),
        ("trap 'echo own' EXIT; false | true", "exit 0"),
        ("exec 98>&-; false | true", "exit 0"),
        ("echo '$PIPESTATUS' | cat", "exit 0"),
    ],
)
async def test_a_part_of_a_pipe_that_failed_is_told(harness: Harness, command: str, summary: str) -> None:
    (harness.root / "sub").mkdir()
    result = await harness.run("shell", command=command)
    assert result.summary == summary
    assert not result.is_error
    assert ("exited" in result.text) == ("exited" in summary)
    answered = "no match" in summary or "they differ" in summary
    assert result.failed == (not answered and summary != "exit 0")


async def test_a_trace_shows_nothing_of_how_failures_are_noted(harness: Harness) -> None:
    result = await harness.run("shell", command="set -x; false | cat; sh -c 'exit 3'; echo done")
    assert sorted(result.text.split("\n")[:-1]) == ["+ cat", "+ echo done", "+ false", "+ sh -c 'exit 3'", "done"]
    assert result.summary == "exit 0 · `false` exited 1 · `sh` exited 3"


async def test_the_codes_of_a_pipe_are_left_to_the_command(harness: Harness) -> None:
    script = 'false | true | false; echo "${PIPESTATUS[@]}"; cat <&98 2>/dev/null || true'
    result = await harness.run("shell", command=script)
    assert result.text == "1 0 1\n[`false` exited 1]"


async def test_outside_the_workspace_the_folder_goes_back(harness: Harness) -> None:
    result = await harness.run("shell", command="cd / && pwd")
    assert "outside the workspace" in result.text
    assert (await harness.run("shell", command="pwd")).text == str(harness.root)


async def test_a_folder_that_is_gone(harness: Harness) -> None:
    await harness.run("shell", command="mkdir sub && cd sub")
    (harness.root / "sub").rmdir()
    assert (await harness.run("shell", command="pwd")).text == str(harness.root)


async def test_output_arrives_while_the_command_runs(harness: Harness) -> None:
    os.mkfifo(harness.root / "gate")
    running = asyncio.create_task(harness.run("shell", command="echo first; read line < gate; echo $line"))
    await until_printed(harness, "first")
    assert not running.done()
    await asyncio.to_thread((harness.root / "gate").write_text, "second\n")
    assert (await running).text == "first\nsecond"
    assert printed(harness) == "first\nsecond\n"


async def test_colours_stay_in_the_pane_only(harness: Harness) -> None:
    command = r"printf '\033[31mred\033[0m \033]0;title\007 \033[2Jdone\n10%%\r50%%\r100%%\n'"
    result = await harness.run("shell", command=command)
    assert result.text == "red  done\n100%"
    assert isinstance(result.display, CommandText)
    assert result.display.output == "\x1b[31mred\x1b[0m  done\n100%\n"


async def test_input_is_empty_and_there_is_no_terminal(harness: Harness) -> None:
    result = await harness.run("shell", command='cat; read line; echo "got: $line"; tty; exec 3</dev/tty')
    assert "got: \nnot a tty" in result.text
    assert "/dev/tty" in result.text


async def test_a_flood_is_bounded(harness: Harness) -> None:
    result = await harness.run(
        "shell", command="echo begin; head -c 500000000 /dev/zero | tr '\\0' 'x'; echo; echo end"
    )
    assert isinstance(result.display, CommandText)
    assert len(result.display.output) < 300_000
    assert len(result.text) <= 30_000
    assert result.text.startswith("begin\n")
    assert result.text.endswith("end")
    assert "left out" in result.text
    pieces = [event.text for event in harness.events if isinstance(event, ToolProgress)]
    # 16 kB and a note at a time, at most 20 times a second: how much that is depends on how long the flood takes.
    assert max(map(len, pieces)) <= 16_000 + 100
    assert sum(map(len, pieces)) < 20_000_000
    assert " bytes not shown live …]\n" in printed(harness)


async def test_broken_and_split_characters(harness: Harness) -> None:
    await harness.run("shell", command=r"printf '\xc3'; head -c 200000 /dev/zero | tr '\0' ' '; printf 'é\xff\xc3'")
    result = await harness.run("shell", command=r"printf 'a\xffb\x00c é 数'")
    assert result.text == "a\N{REPLACEMENT CHARACTER}bc é 数"
    for event in harness.events:
        if isinstance(event, ToolProgress):
            event.text.encode()


async def test_a_timeout_gives_what_came_so_far(harness: Harness, tag: str) -> None:
    result = await harness.run(
        "shell", command=f"export BA_TAG={tag}; trap '' INT TERM; echo early; sleep 60", timeout=2
    )
    assert result.is_error
    assert result.error is not None
    assert result.error.kind == "timeout"
    assert result.text.endswith("Output so far (partial):\nearly")
    assert isinstance(result.display, CommandText)
    assert result.display.exit_code is None
    await all_gone(tag)


async def test_cancel_frees_the_turn_while_the_command_still_resists(harness: Harness, tag: str) -> None:
    use = ToolUse(
        "call", "shell", {"command": f"export BA_TAG={tag}; trap '' INT TERM; echo ready; sleep 60 & wait; wait"}
    )
    call = Call(use.id, harness.branch)
    running = asyncio.ensure_future(harness.tools["shell"].run(use.input, call))
    await until_printed(harness, "ready")
    while not tagged(tag):  # noqa: ASYNC110 - the sleeper shows in no event
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert tagged(tag), "the turn is free before the command has ended"
    assert call.tail == "ready\n"
    await all_gone(tag)


@linux_only
@pytest.mark.parametrize(
    "escape",
    [
        "sleep 60 &",
        "setsid sleep 60 & disown",
        "(setsid sh -c 'trap \"\" INT TERM HUP; sleep 60 & wait; wait' &) ; nohup sleep 60 >/dev/null 2>&1 &",
        f"{sys.executable} -c '{DETACHING}'",
        "for i in $(seq 30); do setsid sleep 60 & done",
    ],
)
async def test_nothing_stays_in_the_background(harness: Harness, tag: str, escape: str) -> None:
    result = await harness.run("shell", command=f"export BA_TAG={tag}\n{escape}\necho done")
    assert "done" in result.text
    assert "left in the background: ended" in result.text
    await all_gone(tag)


async def test_what_is_printed_before_the_loop_goes_on_is_heard(harness: Harness) -> None:
    heard: list[str] = []
    process = Process(
        Program((str(harness.bash), "-c", "echo early"), harness.root, harness.environment), None, heard.append
    )
    while not process.output.total:  # the reading thread has it all while the loop stands still
        os.sched_yield()
    await process.ended.wait()
    assert heard == ["early\n", ""]


@linux_only
async def test_a_killed_ba_leaves_nothing_behind(harness: Harness, tag: str) -> None:
    harness.write(
        "ba.py",
        textwrap.dedent(
            """
            import asyncio, os, shutil
            from pathlib import Path
            from ba_tui.processes.children import Process
            from ba_tui.processes.values import Program

            deaf = "trap '' INT TERM; "
            script = deaf + "setsid sh -c 'sleep 60; sleep 60' & sleep 60 & echo ready; wait; wait"

            async def main():
                program = Program((shutil.which("bash"), "-c", script), Path.cwd(), dict(os.environ))
                process = Process(program, listener=lambda text: print(text, end="", flush=True))
                await process.ended.wait()

            asyncio.run(main())
            """
        ),
    )
    with another(harness, tag) as ba:
        assert ba.stdout is not None
        line = await asyncio.to_thread(ba.stdout.readline)
        assert line == b"ready\n"
        assert len(tagged(tag)) >= 4
        ba.send_signal(signal.SIGKILL)
        await all_gone(tag)


async def test_a_command_that_kills_its_supervisor(harness: Harness, tag: str) -> None:
    detached = "setsid sleep 60 & setsid sh -c 'sleep 60; sleep 60' &"
    command = f"export BA_TAG={tag}; {detached} echo before; kill -9 $PPID; sleep 60"
    result = await harness.run("shell", command=command)
    assert result.is_error
    assert "before" in result.text
    await all_gone(tag)


async def test_keys_do_not_reach_commands(harness: Harness) -> None:
    harness.environment = {
        **harness.environment,
        "ANTHROPIC_API_KEY": "leak-1",
        "OPENAI_API_KEY": "leak-2",
        "HF_TOKEN": "leak-3",
        "AZURE_OPENAI_API_KEY": "leak-4",
        "BASH_ENV": "/dev/stdin",
        "MY_SETTING": "fine",
    }
    harness.equip()
    result = await harness.run("shell", command="env; tr '\\0' '\\n' < /proc/$PPID/environ")
    assert "leak" not in result.text
    assert "BASH_ENV" not in result.text
    assert "MY_SETTING=fine" in result.text


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("ANTHROPIC_AUTH_TOKEN", False),
        ("OPENAI_API_KEY_2", False),
        ("BA_TEAM_TOKEN", False),
        ("BA_TEAM__BUS_URL", False),
        ("GOOGLE_API_KEY", False),
        ("AWS_BEARER_TOKEN_BEDROCK", False),
        ("BASH_FUNC_git%%", False),
        ("AZURE_CLIENT_SECRET", False),
        ("GITHUB_TOKEN", False),
        ("AWS_ACCESS_KEY_ID", False),
        ("AWS_SESSION_TOKEN", False),
        ("PGPASSWORD", False),
        ("STRIPE_SECRET_KEY", False),
        ("GOOGLE_APPLICATION_CREDENTIALS", True),
        ("OPENAI_BASE_URL", True),
        ("AWS_PROFILE", True),
        ("SSH_AUTH_SOCK", True),
        ("TOKENIZERS_PARALLELISM", True),
        ("MONKEY", True),
    ],
)
def test_secrets_are_kept_back(name: str, kept: bool) -> None:
    assert (name in Shell("/bin/bash", {name: "x"}).inherited()) is kept


@pytest.mark.parametrize("name", ["CDPATH", "GLOBIGNORE", "POSIXLY_CORRECT", "RIPGREP_CONFIG_PATH", "BASH_FUNC_ls%%"])
def test_what_changes_the_meaning_of_words_is_kept_back(name: str) -> None:
    assert name not in Shell("/bin/bash", {name: "x"}).inherited()


def test_named_secrets_are_handed_on() -> None:
    given = {"GITHUB_TOKEN": "x", "NPM_TOKEN": "y", "COMPANY_GATEWAY": "z", "BASH_ENV": "/x"}
    shell = Shell("/bin/bash", given, {"COMPANY_GATEWAY"}, keep=("GITHUB_*", "COMPANY_GATEWAY", "BASH_ENV"))
    assert {"GITHUB_TOKEN", "COMPANY_GATEWAY"} == given.keys() & shell.inherited().keys()


def test_more_names_can_be_kept_back() -> None:
    shell = Shell("/bin/bash", {"COMPANY_GATEWAY": "x", "PATH": "/bin"}, secret={"COMPANY_GATEWAY"})
    assert "COMPANY_GATEWAY" not in shell.inherited()
    assert shell.inherited()["PATH"] == "/bin"


@pytest.mark.parametrize(
    ("command", "said"),
    [("  ", "empty"), ("echo a\0b", "NUL"), ("echo " + "x" * 200_000, "longer"), ("\ud800", "Unicode")],
)
async def test_commands_that_are_none(harness: Harness, command: str, said: str) -> None:
    result = await harness.run("shell", command=command)
    assert result.is_error
    assert said in result.text


async def test_without_bash_it_says_so(harness: Harness) -> None:
    harness.bash = None
    harness.equip()
    result = await harness.run("shell", command="true")
    assert result.error is not None
    assert result.error.kind == "dependency_error"
    assert "bash is not installed" in result.text


async def test_syntax_errors_and_multi_line_scripts(harness: Harness) -> None:
    assert "syntax error" in (await harness.run("shell", command="if then")).text
    script = "f() {\n  cat <<'END'\n$HOME \"x\"\nEND\n}\nf | tr x y"
    assert (await harness.run("shell", command=script)).text == '$HOME "y"'
    numbered = await harness.run("shell", command="# first\nnosuch\ncd /\nfi")
    assert "line 2: nosuch" in numbered.text
    assert "line 4: syntax error" in numbered.text


async def test_the_preview_names_the_command(harness: Harness) -> None:
    preview = harness.tools["shell"].preview
    assert preview is not None
    assert await preview({"command": "make"}) == CommandText("make")


def test_the_supervisor_needs_the_standard_library_only() -> None:
    script = str(CHECKOUT / "ba_tui" / "processes" / "supervisor.py")
    code = f"import sys; exec(compile(open({script!r}).read(), 's', 'exec'), dict(__name__='s', __file__={script!r}))"
    heavy = code + "; print([name for name in ('subprocess', 'typing', 'pathlib', 'asyncio') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
