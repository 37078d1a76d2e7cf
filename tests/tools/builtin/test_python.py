"""Python in an interpreter of its own: what it shows, its limits, and that it leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.core.messages import ToolUse
from ba_tui.core.questions import Reply
from ba_tui.core.results import CommandText, ToolResult
from ba_tui.core.tool import Call
from ba_tui.permissions.answers import bundled_rules
from ba_tui.permissions.policy import Policy
from ba_tui.processes.values import ProcessLimits
from ba_tui.tools.builtin.shell import Python
from ba_tui.tools.guards.output import output
from ba_tui.tools.guards.permission import PermissionGate
from tests.tools.running.processes import Floor, all_gone, floor, printed, tagged, until_printed

__all__ = ["floor"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs processes as POSIX has them")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends what detached itself")


async def run(floor: Floor, code: str, **more: object) -> ToolResult:
    return await floor.harness.run("python", code=code, **more)


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("1 + 1", "2"),
        ("x = 3\nx * 2", "6"),
        ("print('a')\n'b'", "a\n'b'"),
        ("None", "(no output)"),
        ("x = 1", "(no output)"),
        ("# only words", "(no output)"),
        ("for i in range(2): i", "(no output)"),
        ("import sys; sys.argv", "['']"),
        ("__name__", "'__main__'"),
        ("'é数😀'", "'é数😀'"),
        ("print('\\ud800')", "\\ud800"),
        ("input()", "EOFError: EOF when reading a line\n[exit code 1]"),
        ("import sys; sys.exit(4)", "[exit code 4]"),
        ("import sys; sys.exit('no luck')", "no luck\n[exit code 1]"),
        ("import os; os._exit(5)", "[exit code 5]"),
        ("import os; os.kill(os.getpid(), 9)", "[exit code 137]"),
        ("import sys; print('err', file=sys.stderr)", "err"),
        ("from __future__ import annotations\ndef f(x: nowhere): ...\nf.__annotations__", "{'x': 'nowhere'}"),
        ("import pickle\nclass A: pass\ntype(pickle.loads(pickle.dumps(A()))) is A", "True"),
        ("import inspect\ndef f(): return 1\nprint(inspect.getsource(f), end='')", "def f(): return 1"),
    ],
)
async def test_what_it_shows(floor: Floor, code: str, shown: str) -> None:
    result = await run(floor, code)
    assert not result.is_error, result.text
    assert result.text.endswith(shown)
    assert isinstance(result.display, CommandText)
    assert (result.display.command, result.display.cwd) == (code, ".")


async def test_a_traceback_is_of_the_code_alone(floor: Floor) -> None:
    floor.harness.write("mine.py", "import json\n\ndef load(text):\n    return json.loads(text)\n")
    result = await run(floor, "import mine\n\ndef f(x):\n    return mine.load(x)\n\nf('{')")
    lines = result.text.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert '  File "<code>", line 6, in <module>' in lines
    assert "    f('{')" in lines
    assert '  File "<code>", line 4, in f' in lines
    assert f'  File "{floor.harness.root}/mine.py", line 4, in load' in lines
    assert lines[-2].startswith("json.decoder.JSONDecodeError: ")
    assert lines[-1] == "[exit code 1]"
    assert "json/decoder.py" not in result.text
    assert "python_runner" not in result.text


@pytest.mark.parametrize(
    ("code", "last"),
    [
        ("def f(:", "SyntaxError: invalid syntax"),
        ("x = 1\n  y = 2", "IndentationError: unexpected indent"),
        ("try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise ValueError('outer') from e", "ValueError: outer"),
        ("def f(): f()\nf()", "RecursionError: maximum recursion depth exceeded"),
        ("raise ExceptionGroup('two', [ValueError('a'), KeyError('b')])", "+------------------------------------"),
        ("class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E", "<exception str() failed>"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise type('X', (BaseException,), {})('odd')", "X: odd"),
        ("return 1", "SyntaxError: 'return' outside function"),
    ],
)
async def test_errors_are_short(floor: Floor, code: str, last: str) -> None:
    result = await run(floor, code)
    assert last in result.text
    assert "python_runner" not in result.text
    assert len(result.text) < 3_000
    assert "[exit code 1" in result.text


async def test_nothing_is_kept_but_files(floor: Floor) -> None:
    await run(floor, "x = 1\nopen('kept.txt', 'w').write('data')")
    assert "NameError" in (await run(floor, "x")).text
    assert (await run(floor, "open('kept.txt').read()")).text == "'data'"


async def test_it_runs_where_shell_commands_run(floor: Floor) -> None:
    floor.harness.write("sub/helper.py", "WORD = 'found'")
    await floor.harness.run("shell", command="cd sub")
    assert (
        await run(floor, "import helper, os; helper.WORD, os.path.basename(os.getcwd())")
    ).text == "('found', 'sub')"
    assert (await run(floor, "import todos")).text.endswith("No module named 'todos'\n[exit code 1]")


async def test_output_arrives_while_it_runs(floor: Floor) -> None:
    os.mkfifo(floor.harness.root / "gate")
    running = asyncio.create_task(run(floor, "print('first')\nopen('gate').read()\nprint('second')"))
    await until_printed(floor.harness, "first")
    assert not running.done()
    await asyncio.to_thread((floor.harness.root / "gate").write_text, "go")
    assert (await running).text == "first\nsecond"
    assert printed(floor.harness) == "first\nsecond\n"


async def test_large_output_is_stored(floor: Floor) -> None:
    result = await run(floor, "print('x' * 100_000)\n'y' * 1_000_000")
    assert floor.stored(result.artifact) == b"x" * 100_000 + b"\n'" + b"y" * 1_000_000 + b"'\n"
    assert len(result.text) < 30_000


async def test_keys_are_not_in_its_environment(floor: Floor) -> None:
    floor.harness.environment = {**floor.harness.environment, "ANTHROPIC_API_KEY": "leak-1", "MY_SETTING": "fine"}
    floor.equip()
    result = await run(floor, "import os; print(dict(os.environ)); open(f'/proc/{os.getppid()}/environ').read()")
    assert "leak" not in result.text
    assert "fine" in result.text


async def test_it_asks_with_the_whole_code_and_runs_nothing_that_names_a_secret(floor: Floor) -> None:
    harness = floor.harness
    policy = Policy(harness.workspace, bundled_rules())
    gate = PermissionGate(policy.judge, policy.remember, lambda call: harness.root)
    harness.tools["python"] = output(gate.guard(harness.tools["python"]))
    harness.write(".env", "KEY=1")
    assert "holds secrets" in (await run(floor, "open('.env').read()")).text
    assert not harness.asked
    harness.answer = lambda question: Reply("session")
    assert (await run(floor, "print(6)")).text == "6"
    (question,) = harness.asked
    assert question.preview == CommandText("print(6)", str(harness.root))
    assert (question.rule, question.risks) == ("python(print(6))", ("runs a command",))
    assert (await run(floor, "print(6)")).text == "6"
    assert len(harness.asked) == 1
    harness.answer = lambda question: Reply("deny")
    assert "did not allow" in (await run(floor, "print(6)\nopen('x', 'w')")).text
    assert not (harness.root / "x").exists()


def fake(root: Path, says: str, folder: str = ".venv") -> Path:
    path = root / folder / "bin" / "python"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho {says}\n")
    path.chmod(0o755)
    return path


async def test_the_interpreter_is_the_projects_own(floor: Floor) -> None:
    root = floor.harness.root
    assert (await run(floor, "import sys; sys.executable")).text == repr(sys.executable)
    other = fake(root, "given", "other")
    fake(root, "project")
    assert (await run(floor, "1")).text == "project"
    floor.python = Python(other)
    floor.equip()
    assert (await run(floor, "1")).text == "given"
    floor.python = Python(root / "nowhere")
    floor.equip()
    assert "could not be started" in (await run(floor, "1")).text


def limited(floor: Floor, limits: ProcessLimits) -> None:
    floor.python = Python(limits=limits)
    floor.equip()


@linux_only
async def test_memory_is_limited(floor: Floor) -> None:
    limited(floor, ProcessLimits(memory=300_000_000))
    result = await run(
        floor, "try:\n    x = b'x' * 1_000_000_000\nexcept MemoryError:\n    print('refused')\nlen(b'x' * 10**8)"
    )
    assert result.text == "refused\n100000000"
    assert "MemoryError" in (await run(floor, "x = [b'x' * 10**6 for _ in range(1000)]")).text


async def test_files_are_limited(floor: Floor) -> None:
    limited(floor, ProcessLimits(file_size=1_000_000))
    result = await run(floor, "open('big', 'wb').write(b'x' * 10_000_000)")
    assert "File too large" in result.text
    assert (floor.harness.root / "big").stat().st_size == 1_000_000


def test_processor_time_covers_all_cores_for_the_time_allowed() -> None:
    assert ProcessLimits().for_seconds(10)["cpu"] == 11 * (os.cpu_count() or 1)


async def test_limits_are_set_and_never_raise_what_holds(floor: Floor) -> None:
    limited(floor, ProcessLimits(memory=10**15, file_size=None, processes=300))
    names = ("CPU", "DATA", "FSIZE", "CORE", "NPROC")
    code = f"import resource as r, json; print(json.dumps([r.getrlimit(getattr(r, 'RLIMIT_' + n)) for n in {names}]))"
    found = dict(zip(names, json.loads((await run(floor, code, timeout=100)).text), strict=True))
    here = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}")) for name in names}
    assert found["CPU"][0] == 101 * (os.cpu_count() or 1)
    assert found["CORE"] == [0, 0]
    assert tuple(found["FSIZE"]) == here["FSIZE"]
    for name in names:
        hard = here[name][1]
        assert hard == resource.RLIM_INFINITY or found[name][1] <= hard
    if sys.platform == "linux":
        assert found["NPROC"][0] >= 300


async def test_processor_time_that_is_used_up_ends_it(floor: Floor) -> None:
    limited(floor, ProcessLimits())
    code = "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 5))\nwhile True: pass"
    result = await run(floor, code)
    assert result.text.endswith("[exit code 152; ended: it used up its processor time]")


HANG = "import signal, time\nfor n in (2, 15): signal.signal(n, signal.SIG_IGN)\nprint('ready')\ntime.sleep(60)"


async def test_a_timeout_gives_what_came_so_far(floor: Floor) -> None:
    result = await run(floor, "import time\nprint('ready')\ntime.sleep(60)", timeout=3)
    assert result.error is not None
    assert result.error.kind == "timeout"
    assert result.text.endswith("Output so far (partial):\nready")
    await all_gone(floor.tag)


async def test_cancelling_frees_the_turn_at_once(floor: Floor) -> None:
    use = ToolUse("call", "python", {"code": HANG})
    running = asyncio.ensure_future(floor.harness.tools["python"].run(use.input, Call(use.id, floor.harness.branch)))
    await until_printed(floor.harness, "ready")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert tagged(floor.tag), "the turn is free before the program has ended"
    await all_gone(floor.tag)


@linux_only
@pytest.mark.parametrize(
    "code",
    [
        "import subprocess; subprocess.Popen(['sleep', '60'])",
        "import subprocess; subprocess.Popen(['sleep', '60'], start_new_session=True, stdout=-3, stderr=-3)",
        "import os, time\nfor _ in range(5):\n    if not os.fork():\n        os.setsid(); time.sleep(60)",
        "import multiprocessing as m, os, time\nm.Process(target=time.sleep, args=(60,)).start(); os._exit(0)",
    ],
)
async def test_nothing_stays_behind(floor: Floor, code: str) -> None:
    result = await run(floor, code)
    assert not result.is_error
    await all_gone(floor.tag)


async def test_it_moves_to_the_background_too(floor: Floor) -> None:
    os.mkfifo(floor.harness.root / "gate")
    use = ToolUse("call", "python", {"code": "print('first')\nopen('gate').read()\n6 * 7"})
    running = asyncio.create_task(floor.harness.finish(use))
    await until_printed(floor.harness, "first")
    assert floor.shells.detach("call")
    assert "Moved to the background" in (await running).text
    (moved,) = floor.shells.list()
    await asyncio.to_thread((floor.harness.root / "gate").write_text, "go")
    await floor.shells.find(moved.id).process.ended.wait()
    assert (await floor.harness.run("shell_output", id=moved.id)).text.endswith("\n42")


@pytest.mark.parametrize(
    ("code", "said"), [("  ", "empty"), ("x\0", "NUL"), ("x" * 200_000, "longer"), ("\ud800", "Unicode")]
)
async def test_code_that_is_none(floor: Floor, code: str, said: str) -> None:
    result = await run(floor, code)
    assert result.is_error
    assert said in result.text


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40))
@settings(max_examples=8, deadline=None)
async def test_any_text_gives_a_result(floor: Floor, code: str) -> None:
    result = await run(floor, code, timeout=20)
    assert result.text
    assert result.error is None or result.error.kind in {"invalid_parameters", "timeout"}
    assert "python_runner" not in result.text


def test_the_runner_stands_alone(tmp_path: Path) -> None:
    script = Path(__file__).resolve().parents[3] / "ba_tui" / "tools" / "builtin" / "python_runner.py"
    (tmp_path / "ast.py").write_text("raise SystemExit('shadowed')")
    done = subprocess.run(
        [
            sys.executable,
            "-S",
            str(script),
            "import sys; [n for n in ('typing', 'pathlib', 'ba_tui') if n in sys.modules]",
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout.strip() == "[]"


async def test_no_process_of_the_session_is_left(floor: Floor) -> None:
    await run(floor, "1")
    await all_gone(floor.tag)
    mine = psutil.Process().children(recursive=True)
    psutil.wait_procs(mine, 10)
    assert not [child for child in mine if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
