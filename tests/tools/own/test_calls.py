"""Tools of people's own in their worker: nothing they do ends the loop, none of their processes stays."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.core.messages import ToolOutput
from ba_tui.core.results import Table
from ba_tui.tools.registry import Registry
from tests.script import Script, collect, conversation, says
from tests.tools.hostile import HOSTILE, WAYS
from tests.tools.own.own_tools import Caller, Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def one(home: Home, text: str, name: str = "own") -> Registry:
    home.write("own.py", "from ba_tui import tool\n" + text)
    registry = home.registry()
    assert list(registry.problems()) == []
    assert registry.get_tool(name) is not None
    return registry


async def test_results_of_all_kinds_reach_the_model(home: Home):
    registry = one(
        home,
        '''
import sys
from dataclasses import dataclass
from datetime import date
from ba_tui.core.results import Diff, ToolResult
@dataclass
class Row:
    name: str
    on: date
@tool
def own(kind: str) -> object:
    """Return."""
    match kind:
        case "text": return "words"
        case "none": return None
        case "printed": print("said"); return None
        case "record": return {"a": [1, None, True]}
        case "rows": return [Row("x", date(2026, 11, 21)), Row("y", date(2026, 11, 22))]
        case "loaded": return sorted({"asyncio", "jsonschema"} & sys.modules.keys())
        case "own": return ToolResult("told", Diff("a", None, "b"), summary="+1", artifact="data/x")
        case _: return ToolResult("sorry", is_error=True)
''',
    )
    caller, own = Caller(), registry.get_tool("own")
    texts = {
        kind: (await caller.run(own, kind=kind))
        for kind in ("text", "none", "printed", "record", "rows", "loaded", "own", "no")
    }
    assert texts["text"].text == "words"
    assert texts["none"].text == "(nothing was returned)"
    assert texts["printed"].text == "said"
    assert caller.progress == "said\n"
    assert (texts["record"].text, texts["record"].kind) == ('{"a":[1,null,true]}', "json")
    assert texts["rows"].display == Table(("name", "on"), (("x", "2026-11-21"), ("y", "2026-11-22")))
    assert texts["loaded"].text == "[]", "a worker loads only what the call needs"
    assert (texts["own"].text, texts["own"].summary, texts["own"].artifact) == ("told", "+1", None)
    assert texts["own"].display is not None
    assert texts["no"].is_error
    registry.close()


async def test_arguments_are_checked_before_the_worker_sees_them(home: Home):
    registry = one(home, '@tool\ndef own(times: int) -> int:\n    """Double."""\n    return times * 2\n')
    caller, own = Caller(), registry.get_tool("own")
    wrong = await caller.run(own, times="many")
    assert wrong.error is not None
    assert wrong.error.kind == "invalid_parameters"
    assert 'times: expected integer, got string "many"' in wrong.text
    assert (await caller.run(own, times=4)).text == "8"
    registry.close()


async def test_an_error_names_its_line_and_no_trace_reaches_the_model(home: Home):
    registry = one(home, '@tool\ndef own() -> int:\n    """Fail."""\n    return 1 // 0\n')
    result = await Caller().run(registry.get_tool("own"))
    assert "own failed: ZeroDivisionError: integer division or modulo by zero (line 5 of its file)" in result.text
    assert "Traceback" not in result.text
    registry.close()


async def test_a_tool_that_needs_what_is_not_there_says_so(home: Home):
    registry = one(
        home, '@tool(needs=("json", "no-such-program"))\ndef own() -> str:\n    """Need."""\n    return "ran"\n'
    )
    result = await Caller().run(registry.get_tool("own"))
    assert result.error is not None
    assert result.error.kind == "dependency_error"
    assert "own needs no-such-program, which is not installed" in result.text
    entry = registry.entry("own")
    assert entry is not None
    assert entry.lacking() == "no-such-program"
    registry.close()


async def test_a_class_keeps_its_state_and_calls_at_once_take_turns(home: Home):
    home.write("hostile.py", HOSTILE)
    registry = home.registry()
    caller, state = Caller(), registry.get_tool("state")
    results = await asyncio.gather(*(caller.run(state) for _ in range(4)))
    assert sorted(result.text for result in results) == [f'{{"calls":{n}}}' for n in (1, 2, 3, 4)]
    assert await caller.run(registry.get_tool("behave"), how="_exit")
    assert (await caller.run(state)).text == '{"calls":1}', "the process that held the state is gone"
    registry.close()


async def test_calls_at_once_do_not_wait_for_each_other(home: Home):
    """Two calls that meet: each waits for the other's sign."""
    registry = one(
        home,
        '''
import pathlib, time
@tool(repeatable=True, timeout=20)
def own(mine: str, other: str) -> str:
    """Meet."""
    pathlib.Path(mine).touch()
    while not pathlib.Path(other).exists():
        time.sleep(0.01)
    return "met"
''',
    )
    caller, own = Caller(), registry.get_tool("own")
    results = await asyncio.gather(caller.run(own, mine="a", other="b"), caller.run(own, mine="b", other="a"))
    assert [result.text for result in results] == ["met", "met"]
    registry.close()


@pytest.mark.parametrize("deaf", [False, True])
async def test_a_call_that_hangs_is_ended_with_all_it_started(home: Home, deaf: bool):
    home.write("hostile.py", HOSTILE)
    registry = home.registry()
    caller = Caller()
    await caller.run(registry.get_tool("behave"), how="nan")
    result = await caller.run(registry.get_tool("hang"), deaf_too=deaf)
    assert result.error is not None
    assert result.error.kind == "timeout"
    assert "so far" in result.text
    registry.close()
    assert home.left() == []


async def test_cancelling_frees_the_turn_and_ends_the_process(home: Home):
    home.write("hostile.py", HOSTILE.replace("timeout=1.2,", "timeout=60,"))
    registry = home.registry()
    hang = registry.get_tool("hang")
    assert hang is not None
    script = Script(says("", ("hang", {})), says("ok"))
    turn = conversation(script, hang).say("go")

    def stop(event: Any) -> None:
        if event.type == "tool_progress":
            turn.cancel()

    events = await collect(turn, stop)
    assert events[-1].type == "turn_ended"
    assert next(event for event in events if event.type == "tool_finished").result.error.kind == "interrupted"  # pyright: ignore
    registry.close()
    assert home.left() == []


async def played(registry: Registry, calls: list[tuple[str, dict[str, Any]]]) -> None:
    """All calls in one turn; it ends well, and each call has one result."""
    tools = [entry.tool for entry in registry.entries()]
    script = Script(*(says(f"step {number}", call) for number, call in enumerate(calls)), says("done"))
    talk = conversation(script, *tools)
    turn = talk.say("go")
    events = [event async for event in turn]
    assert events[-1].type == "turn_ended"
    assert events[-1].reason == "done"  # pyright: ignore[reportAttributeAccessIssue]
    messages = talk.transcript.messages
    wanted = [call.id for message in messages for call in message.calls]
    given = [block.tool_use_id for message in messages for block in message.blocks if isinstance(block, ToolOutput)]
    assert wanted == given
    for message in messages:
        for block in message.blocks:
            if isinstance(block, ToolOutput):
                assert "\x1b" not in block.content
                assert block.content.encode()


def hostile(ways: list[tuple[str, str]]) -> list[tuple[str, dict[str, Any]]]:
    """A good call after each, so that no tool is switched off for its failures. No two calls are equal: equal ones
    would be a repetition."""
    return [(name, {"how": how, "again": number}) for number, (name, way) in enumerate(ways) for how in (way, "nan")]


async def test_no_behaviour_ends_the_loop_or_leaves_a_process(home: Home):
    home.write("hostile.py", HOSTILE)
    registry = home.registry()
    await played(registry, hostile([("behave", way) for way in WAYS]))
    registry.close()
    assert home.left() == []


@settings(max_examples=4, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["behave", "behave_async"]), st.sampled_from(WAYS)), min_size=1, max_size=5))
async def test_no_order_of_behaviours_does(tmp_path_factory: pytest.TempPathFactory, ways: list[tuple[str, str]]):
    home = Home(tmp_path_factory.mktemp("hostile"))
    home.write("hostile.py", HOSTILE)
    registry = home.registry()
    await played(registry, hostile(ways))
    registry.close()
    assert home.left() == []


async def test_what_a_call_leaves_running_is_ended_and_said(home: Home):
    home.write("hostile.py", HOSTILE)
    registry = home.registry()
    result = await Caller().run(registry.get_tool("behave"), how="child")
    if Path("/proc/self/task").exists():
        assert result.text == "left\n[1 process left in the background: ended]"
        assert home.left() == []
    registry.close()


async def test_workers_end_with_their_registry(home: Home):
    registry = one(home, '@tool\ndef own() -> str:\n    """Say."""\n    return "said"\n')
    await Caller().run(registry.get_tool("own"))
    assert home.processes()
    registry.close()
    assert home.left() == []


KILLED = """
import asyncio, sys
from pathlib import Path
from tests.tools.hostile import HOSTILE, WAYS
from tests.tools.own.own_tools import Caller, Home
home = Home(Path(sys.argv[1]), mark=sys.argv[2])
asyncio.run(Caller().run(home.registry().get_tool("own")))
"""


def test_a_killed_ba_leaves_no_worker_behind(home: Home):
    home.write(
        "own.py",
        """
        import signal, subprocess, time
        from ba_tui import tool
        @tool
        def own() -> str:
            'Wait.'
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            subprocess.Popen(["sleep", "600"], start_new_session=True)
            open("started", "w").close()
            time.sleep(600)
        """,
    )
    os.mkfifo(home.root / "started")
    command = [sys.executable, "-c", KILLED, str(home.root), home.mark]
    ba = subprocess.Popen(command, cwd=Path(__file__).parents[3])
    (home.root / "started").read_bytes()
    running = len(home.processes())
    ba.kill()
    ba.wait()
    assert running >= 3, "the supervisor, the work and what it started"
    assert home.left() == []


async def test_a_tool_may_say_that_its_results_can_be_kept(home: Home):
    text = """
@tool(effect="read", paths=["path"], cacheable=True, repeatable=True)
def own(path: str) -> str:
    "Bytes of a file."
    return str(len(open(path).read()))
"""
    registry, caller, file = one(home, text), Caller(), home.root / "a.txt"
    file.write_text("abc")
    first, again = [await caller.run(registry.get_tool("own"), path=str(file)) for _ in range(2)]
    file.write_text("abcdef")
    changed = await caller.run(registry.get_tool("own"), path=str(file))
    assert (first.text, "cached_s" in again.meta, changed.text) == ("3", True, "6")
    registry.close()
