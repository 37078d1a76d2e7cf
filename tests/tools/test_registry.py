"""What tools there are and what tools.yaml says of them: duplicates, layers, options, mistakes, speed of a look."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Allow, Ask, Policy
from ba_tui.permissions.verdicts import JudgedCall
from ba_tui.resources import bundled
from ba_tui.tools.definitions import Definition
from ba_tui.tools.registry import Registry, ToolFiles, read_tool_choices
from ba_tui.tools.shells import Shell
from ba_tui.tools.toolbox import SessionPlace, builtin_tools
from tests.tools.own.own_tools import Caller, Home, names

GOOD = 'from ba_tui import tool\n@tool(effect="read")\ndef {name}() -> str:\n    "Say."\n    return "{name}"\n'


async def nothing(args: Mapping[str, Any], call: Call) -> ToolResult:
    return ToolResult("nothing")


def plain(name: str, **facts: Any) -> Tool:
    return Tool(name, f"Do {name}.", {"type": "object", "properties": {}}, nothing, facts=ToolFacts(**facts))


def same(tool: Tool) -> Tool:
    return tool


def registry(tmp_path: Path, text: str, *tools: Tool, ours: str = "") -> Registry:
    first, second = tmp_path / "ours.yaml", tmp_path / "tools.yaml"
    first.write_text(ours)
    second.write_text(text)
    made = Registry(same, ToolFiles(first, lambda: [second]))
    for tool in tools:
        made.add(tool)
    return made


def persistent(made: Registry, **given: bool) -> list[str]:
    return names([entry.tool for entry in made.persistent(**given)])


def test_two_tools_of_one_name_are_an_error_that_names_both():
    made = Registry(same)
    made.add(plain("x"), origin="user", file="a.py", line=3)
    with pytest.raises(ValueError, match=r"two tools are named 'x': a\.py:3 has it, so b\.py:7 is left out"):
        made.add(plain("x"), origin="user", file="b.py", line=7)
    with pytest.raises(ValueError, match="'tool_search' is kept"):
        made.add(plain("tool_search"))


def test_an_unknown_tool_is_none():
    assert Registry(same).get_tool("unknown") is None


def test_files_with_the_name_of_a_tool_that_is_there_are_told(tmp_path: Path):
    home = Home(tmp_path)
    home.write("a.py", GOOD.format(name="taken") + GOOD.format(name="mine"))
    made = home.registry()
    made.add(plain("built"))
    home.write("b.py", GOOD.format(name="taken") + GOOD.format(name="built"))
    made.refresh()
    first, second = made.problems()
    assert str(first) == (
        f"{home.tools / 'b.py'}:2: two tools are named 'taken': {home.tools / 'a.py'}:2 has it, "
        f"so {home.tools / 'b.py'}:2 is left out"
    )
    assert "two tools are named 'built': built in has it" in str(second)
    (home.tools / "a.py").unlink()
    made.refresh()
    assert made.entry("taken") is not None, "the other one takes its place"
    assert made.get_tool("mine") is None
    made.close()


def test_any_thread_may_register():
    made = Registry(same)
    failed: list[ValueError] = []
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        for number in range(200):
            try:
                made.add(plain(f"tool_{number}"))
            except ValueError as error:
                failed.append(error)
            made.persistent()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made.entries()) == 200
    assert len(failed) == 7 * 200


def test_every_built_in_tool_stands_in_the_bundled_file(definitions: Mapping[str, Definition], tmp_path: Path):
    registered = read_tool_choices(bundled("config") / "tools.yaml")
    assert registered.problems == ()
    tools = builtin_tools(definitions, SessionPlace(Workspace(tmp_path), Shell(None, {}), None))
    assert [name for name in names(tools) if name not in {*registered.core, *registered.optional}] == []


def test_core_comes_first_then_what_is_enabled_then_people_s_own(tmp_path: Path):
    ours = "core: [b, a]\noptional:\n  off: {enabled: false}\n  later: {enabled: true}\n"
    made = registry(tmp_path, "", *(plain(name) for name in ("later", "a", "off", "b", "unnamed")), ours=ours)
    made.add(plain("own"), origin="user", file="own.py")
    made.add(plain("offered"), origin="package", file="offering")
    assert persistent(made) == ["b", "a", "later", "own"]
    assert names([entry.tool for entry in made.entries()]) == ["b", "a", "off", "later", "unnamed", "own", "offered"]


def test_a_later_file_wins_word_by_word(tmp_path: Path):
    ours = "core: [a]\noptional: {b: {enabled: true, category: one, timeout: 5}, c: {enabled: false}}\n"
    theirs = "core: [c]\noptional: {a: {enabled: false}, b: {category: other}}\n"
    made = registry(tmp_path, theirs, plain("a"), plain("b"), plain("c"), ours=ours)
    assert persistent(made) == ["c", "b"]
    tool = made.get_tool("b")
    assert tool is not None
    assert (tool.facts.category, tool.timeout) == ("other", 5)


def test_every_option_reaches_the_tool(tmp_path: Path):
    text = """
optional:
  a:
    enabled: true
    available_to_subagent: false
    category: sky
    tags: [up, blue]
    description: Another one.
    output_level: brief
    timeout: 7.5
    examples: [{text: hello}]
"""
    made = registry(tmp_path, text, plain("a"), plain("b", subagents=False), plain("waits"))
    tool = made.get_tool("a")
    assert tool is not None
    assert (tool.facts.category, tool.facts.tags, tool.facts.level, tool.facts.subagents) == (
        "sky", ("up", "blue"), "brief", False,
    )  # fmt: skip
    assert (tool.description, tool.timeout) == ("Another one.", 7.5)
    assert tool.facts.examples == ({"text": "hello"},)
    assert persistent(made, for_subagent=True) == []


def test_subagents_have_what_is_meant_for_them(tmp_path: Path):
    text = "core: [a, b, c]\noptional: {b: {available_to_subagent: false}, c: {available_to_subagent: true}}\n"
    made = registry(tmp_path, text, plain("a"), plain("b"), plain("c", subagents=False))
    assert persistent(made, for_subagent=True) == ["a", "c"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("core: read_file", "1: core: expected a list of names, got 'read_file'"),
        ("core:\n  - a\n  - 3", "3: core.1: expected a name, got 3"),
        ("cores: [a]", "1: cores: is not known; did you mean 'core'?"),
        ("optional: [a]", "1: optional: expected options for each name, got a list"),
        ("optional:\n  a: yes", "2: optional.a: expected options by name, got yes (a switch)"),
        ("optional:\n  a:\n    enabld: true", "3: optional.a.enabld: is not known; did you mean 'enabled'?"),
        ("optional: {a: {enabled: 1}}", "1: optional.a.enabled: expected true or false, got 1"),
        ("optional: {a: {tags: up}}", "1: optional.a.tags: expected a list of texts, got 'up'"),
        ("optional: {a: {examples: [x]}}", "1: optional.a.examples: expected a list of arguments"),
        ("optional: {a: {category: [x]}}", "1: optional.a.category: expected a text, got a list"),
        ("optional: {a: {description: ''}}", "1: optional.a.description: expected a text, got ''"),
        ("optional: {a: {output_level: loud}}", "expected one of brief, standard, full, got 'loud'"),
        ("optional: {a: {timeout: -1}}", "1: optional.a.timeout: expected seconds"),
        ("optional: {a: {timeout: yes}}", "1: optional.a.timeout: expected seconds"),
        ("core: [b]", "1: there is no tool 'b'"),
        ("optional:\n  aa: {enabled: true}", "2: there is no tool 'aa'; did you mean 'a'?"),
        ("core: [a", "1: is not valid YAML"),
        ("- a", "1: expected lines of `name: value`, got a list"),
        ("core: [a]\ncore: [a]", "2: core: is set again (first in line 1)"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_the_rest_counts(tmp_path: Path, text: str, said: str):
    made = registry(tmp_path, text, plain("a"), ours="core: [a]")
    (problem,) = made.problems()
    assert f"{tmp_path / 'tools.yaml'}:{said}" in str(problem) or said in str(problem)
    assert problem.line
    assert persistent(made) == ["a"]


def test_a_name_of_the_bundled_file_without_a_tool_is_no_mistake(tmp_path: Path):
    made = registry(tmp_path, "", plain("a"), ours="core: [a, not_built]")
    assert list(made.problems()) == []


def test_a_change_of_the_file_counts_from_the_next_look_on(tmp_path: Path):
    made = registry(tmp_path, "", plain("a"))
    assert persistent(made) == []
    (tmp_path / "tools.yaml").write_text("core: [a]\n")
    made.refresh()
    assert persistent(made) == ["a"]


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
WORDS = ["enabled", "tags", "timeout", "output_level", "core", "optional", "a", "available_to_subagent"]
OPTIONS = st.sampled_from(WORDS)
CONTENT = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(OPTIONS, inner, max_size=4), max_leaves=12
)


@given(CONTENT | st.fixed_dictionaries({"core": CONTENT, "optional": st.dictionaries(OPTIONS, CONTENT)}))
def test_whatever_the_file_holds_the_rest_goes_on(tmp_path_factory: pytest.TempPathFactory, content: object):
    folder = tmp_path_factory.mktemp("yaml")
    made = registry(folder, yaml.safe_dump(content), plain("b"), ours="core: [b]")
    assert "b" in persistent(made) or "b" in str(content)
    for problem in made.problems():
        assert str(problem).startswith(str(folder / "tools.yaml"))


async def test_what_people_add_passes_all_guards(tmp_path: Path):
    home = Home(tmp_path)
    home.write(
        "a.py", "from ba_tui import tool\n@tool\ndef a(x: int) -> str:\n    'Say.'\n    return chr(27) + '[2Jwords'\n"
    )
    made = home.registry()
    caller = Caller()
    assert "unknown parameter 'y'; known are x" in (await caller.run(made.get_tool("a"), y=1)).text
    assert (await caller.run(made.get_tool("a"), x=1)).text == "words"
    entry = made.entry("a")
    assert entry is not None
    assert (entry.tool.effect, entry.origin, entry.place) == (Effect.EXECUTE, "user", f"{home.tools / 'a.py'}:2")
    made.close()


async def test_a_tool_that_a_person_switches_off_does_nothing_and_comes_back(tmp_path: Path):
    made = registry(tmp_path, "optional: {a: {enabled: true}}\n", plain("a"))
    made.switch("a", on=False)
    assert persistent(made) == []
    result = await Caller().run(made.get_tool("a"))
    assert result.error is not None
    assert result.error.kind == "permission_denied"
    assert "switched a off" in result.text
    made.refresh()
    assert persistent(made) == [], "whatever the files say"
    made.switch("a", on=True)
    assert persistent(made) == ["a"]
    assert (await Caller().run(made.get_tool("a"))).text == "nothing"


def test_a_tool_that_runs_something_of_its_own_can_be_allowed_for_good(tmp_path: Path):
    """Without a target there is no command to be judged word for word; the rule is the tool's name."""
    tool = Tool("deploy", "Deploy.", {"type": "object"}, nothing, Effect.EXECUTE)
    policy = Policy(Workspace(tmp_path))
    asked = policy.judge(JudgedCall(tool, {"where": "here"}, tmp_path))
    assert isinstance(asked, Ask)
    assert asked.rule == "deploy"
    policy.remember("deploy", "session")
    assert isinstance(policy.judge(JudgedCall(tool, {"where": "there"}, tmp_path)), Allow)
