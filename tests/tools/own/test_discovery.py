"""Which files hold tools, what keeps some out, and what is noticed while ba runs."""

from __future__ import annotations

import os
import py_compile
import sys
from pathlib import Path

import pytest

from ba_tui.tools.discovery import Discovery, DiscoveryOptions, ToolFolder, ToolProblem
from tests.tools.own.own_tools import Caller, Home

GOOD = (
    'from ba_tui import tool\n@tool(effect="read")\ndef {name}() -> str:\n    """Say {said}."""\n    return "{said}"\n'
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def good(name: str, said: str = "hello") -> str:
    return GOOD.format(name=name, said=said)


def found(discovery: Discovery) -> list[str]:
    return [record["name"] for module in discovery.look() for record in module.records]


def problems(home: Home, *texts: str) -> list[ToolProblem]:
    """What is said of files that are broken; the good one beside them is there all the same."""
    home.write("good.py", good("good"))
    files = [home.write(f"bad_{number:02}.py", text) for number, text in enumerate(texts)]
    modules = home.discovery().look()
    assert [record["name"] for module in modules for record in module.records] == ["good"]
    said = [module.problem for module in modules if module.problem]
    assert [each.file for each in said] == [str(file) for file in files]
    assert home.left() == []
    return said


def test_files_in_the_order_of_their_names_and_several_tools_a_file(home: Home):
    home.write("b.py", good("b") + good("b_two"))
    home.write("a.py", good("a"))
    assert found(home.discovery()) == ["a", "b", "b_two"]


def test_tests_and_private_files_are_no_tools(home: Home):
    for name in ("test_a.py", "conftest.py", "_shared.py", ".hidden.py", "notes.txt", "a.pyc"):
        home.write(name, good("never"))
    home.write("sub/a.py", good("never"))
    assert found(home.discovery()) == []


def test_a_private_module_beside_a_tool_serves_it_and_hides_no_library(home: Home):
    home.write("_words.py", "WORD = 'shared'\n")
    home.write("json.py", "raise SystemExit('not the real one')\n")
    home.write("pack/__init__.py", "from pack.part import PART\n")
    home.write("pack/part.py", "PART = 'packed'\n")
    home.write(
        "a.py",
        """
        import json
        from _words import WORD
        from pack import PART
        from ba_tui import tool
        @tool
        def a() -> str:
            \"\"\"Say.\"\"\"
            return json.dumps([WORD, PART])
        """,
    )
    discovery = home.discovery()
    modules = {Path(module.shown).name: module for module in discovery.look()}
    assert modules["a.py"].problem is None
    assert list(home.tools.rglob("__pycache__")) == []
    discovery.close()


def test_a_planted_cache_of_compiled_code_is_not_run(home: Home):
    """What a person reads in the source is what runs, whatever lies in __pycache__."""
    evil = home.write("_evil.txt", "WORD = 'evil'\n")
    source = home.write("_words.py", "WORD = 'good'\n")
    compiled = home.tools / "__pycache__" / f"_words.{sys.implementation.cache_tag}.pyc"
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(evil), str(compiled), str(source), invalidation_mode=unchecked)
    home.write("b.py", "import _words\nassert _words.WORD == 'good', _words.WORD\n" + good("b"))
    assert found(home.discovery()) == ["b"]


def test_all_wins_over_what_stands_in_the_file(home: Home):
    home.write("a.py", good("a") + good("b") + "__all__ = ['b']\n")
    assert found(home.discovery()) == ["b"]


BROKEN = [
    ("def x(:\n", 1, "SyntaxError: invalid syntax"),
    ("\n\n1 // 0\n", 3, "ZeroDivisionError: integer division or modulo by zero"),
    ("import sys\nsys.exit(3)\n", 2, "SystemExit: 3"),
    ("import os\nos._exit(4)\n", 0, "it could not be loaded: it ended its own process (exit 4)"),
    ("import no_such_module\n", 1, "the module 'no_such_module' is not installed"),
    ("raise BaseException('odd')\n", 1, "BaseException: odd"),
    ("from ba_tui import tool\n@tool\ndef x(a) -> str:\n    'Doc.'\n", 2, "x: the parameter 'a' has no type hint"),
    (
        "from ba_tui import tool\n@tool(schema={'type': 'object', 'required': 3})\ndef x() -> str:\n    'Doc.'\n",
        2,
        "x: the schema at required is not a valid JSON Schema: expected array, got integer 3",
    ),
    ("from ba_tui import tool\n@tool(efect='read')\ndef x() -> str:\n    'Doc.'\n", 2, "did you mean 'effect'"),
    (
        "from ba_tui import tool\n@tool(name='y')\ndef x():\n    'Doc.'\n@tool\ndef y():\n    'Doc.'\n",
        5,
        "two tools are named 'y': the other one is in line 2",
    ),
    ("\x00", 0, "SyntaxError"),
]


def test_broken_files_are_told_with_their_lines_and_stop_no_other(home: Home):
    for (text, line, said), told in zip(BROKEN, problems(home, *(each[0] for each in BROKEN)), strict=True):
        assert said in told.text, text
        assert told.line == line, text
        assert str(told).startswith(f"{told.file}:{line}: " if line else f"{told.file}: "), text


def test_a_file_that_is_no_text_is_told(home: Home):
    home.tools.mkdir()
    (home.tools / "bad.py").write_bytes(b"# coding: utf-8\n\xff")
    assert "SyntaxError" in problem_of(home)


def test_a_pipe_is_told_and_never_waited_for(home: Home):
    home.tools.mkdir()
    os.mkfifo(home.tools / "bad.py")
    assert problem_of(home) == "it can't be read: it is not a regular file"
    (home.tools / "bad.py").unlink()
    (home.tools / "bad.py").symlink_to("bad.py")
    assert "levels of symbolic links" in problem_of(home)


def problem_of(home: Home) -> str:
    (module,) = home.discovery().look()
    assert module.problem is not None
    return module.problem.text


def test_the_way_to_an_error_is_kept_for_a_closer_look(home: Home):
    told, unread = problems(home, "def f():\n    1 // 0\nf()\n", "def x(:\n")
    assert told.line == 2
    assert told.trace.splitlines()[1].strip().endswith('bad_00.py", line 3, in <module>')
    assert unread.trace.splitlines()[0].endswith('bad_01.py", line 1')


def test_a_file_that_blocks_while_it_loads_is_ended_and_told(tmp_path: Path):
    home = Home(tmp_path, patience=1.5)
    home.write("bad.py", "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)\n")
    assert problem_of(home) == "it did not load within 1.5 s; a tool file may only define things"
    assert home.left() == []


def test_new_changed_and_removed_files_are_noticed(home: Home):
    path = home.write("a.py", good("a"))
    discovery = home.discovery()
    first = discovery.look()
    assert discovery.look()[0] is first[0], "what did not change is not loaded again"
    home.write("b.py", good("b"))
    assert found(discovery) == ["a", "b"]
    path.write_text(good("a_new"), "utf-8")
    assert found(discovery) == ["a_new", "b"]
    assert first[0].pool.closed
    path.unlink()
    assert found(discovery) == ["b"]


def test_a_change_of_a_private_module_is_a_change_of_the_tools_beside_it(home: Home):
    shared = home.write("_names.py", "NAME = 'one'\n")
    home.write(
        "a.py", "from _names import NAME\nfrom ba_tui import tool\n@tool(name=NAME)\ndef a() -> str:\n    'Doc.'\n"
    )
    discovery = home.discovery()
    assert found(discovery) == ["one"]
    shared.write_text("NAME = 'other'\n")
    assert found(discovery) == ["other"]


def test_what_is_known_needs_no_process_at_the_next_start(home: Home):
    marker = home.root / "loaded"
    home.write("a.py", f"open({str(marker)!r}, 'a').write('x')\n" + good("a"))
    assert found(home.discovery()) == ["a"]
    assert found(home.discovery()) == ["a"]
    assert marker.read_text() == "x"
    (home.root / "cache.json").write_text('{"of": 3, "files": [')
    assert found(home.discovery()) == ["a"], "a broken cache is no trouble"


def test_an_untrusted_folder_is_not_even_loaded(home: Home):
    marker = home.root / "loaded"
    home.write("a.py", f"open({str(marker)!r}, 'a').write('x')\n" + good("a"))
    trusted = False
    discovery = home.discovery(ToolFolder(home.tools, "project", lambda: trusted))
    assert found(discovery) == []
    assert not marker.exists()
    trusted = True
    assert found(discovery) == ["a"]
    trusted = False
    assert found(discovery) == []


async def test_a_file_that_changes_after_the_look_is_not_run(home: Home):
    path = home.write("a.py", good("a"))
    registry = home.registry()
    tool = registry.get_tool("a")
    path.write_text(good("a", "something else"), "utf-8")
    result = await Caller().run(tool)
    assert "the file changed meanwhile" in result.text
    registry.refresh()
    assert (await Caller().run(registry.get_tool("a"))).text == "something else"
    late = await Caller().run(tool)
    assert "is gone, was changed or is not trusted any more" in late.text
    registry.close()


def test_installed_packages_offer_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    home = Home(tmp_path, packages=True, python_path=str(site))
    assert found(home.discovery()) == []
    assert found(home.discovery()) == []
    info = site / "offering-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offering\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ba.tools]\nwhole = offering_tools\none = offering_more:third\n")
    (site / "offering_tools.py").write_text(good("first_one") + good("second_one"))
    (site / "offering_more.py").write_text(good("third") + good("fourth"))
    assert sorted(found(home.discovery())) == ["first_one", "second_one", "third"]


def test_no_folder_is_no_trouble(tmp_path: Path):
    home = Home(tmp_path)
    options = DiscoveryOptions((ToolFolder(tmp_path / "nowhere", "extra"),), home.worker_settings, None, packages=False)
    assert Discovery(options).look() == []
