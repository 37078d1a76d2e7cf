"""What a model is told of: a list that only grows at its end, mentions, what is deferred, and finding it in a turn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.agent import Agent
from ba_tui.core.events import Notice, TurnStarted
from ba_tui.core.messages import ToolOutput, user
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.tools.definitions import Definition
from ba_tui.tools.registry import Registry, ToolFiles
from ba_tui.tools.visible import Search, ToolArrivals, Visible, matching, mentioned
from tests.script import Script, says
from tests.tools.own.own_tools import Home, names


async def say_name(args: Mapping[str, Any], call: Call) -> ToolResult:
    return ToolResult("ran")


def plain(name: str, size: int = 10, words: str = "", **facts: Any) -> Tool:
    description = f"{words or name} {'x' * size}"
    return Tool(name, description, {"type": "object", "properties": {}}, say_name, facts=ToolFacts(**facts))


def registry(core: Sequence[Tool] = (), optional: Sequence[Tool] = (), off: Sequence[Tool] = ()) -> Registry:
    made = Registry(lambda tool: tool, ToolFiles())
    for tool in (*core, *optional):
        made.add(tool, origin="workflow")
    for tool in off:
        made.add(tool)
    return made


@pytest.fixture
def search(definitions: Mapping[str, Definition]) -> Search:
    return Search(definitions["tool_search"])


def listed(visible: Visible) -> list[str]:
    return names(visible.visible())


async def start_turn(visible: Visible, prompt: str, active: Sequence[str] = ()) -> Branch:
    branch = Branch(Turn(), Transcript())
    branch.emit(TurnStarted(user(prompt)))
    await ToolArrivals(visible, lambda: active).before(branch)
    return branch


async def test_persistent_then_skills_then_mentions_without_duplicates(search: Search):
    made = registry([plain("a"), plain("b")], off=[plain("c"), plain("d"), plain("e")])
    visible = Visible(made, search)
    await start_turn(visible, "use @d and @c and @b", active=("e", "a", "c"))
    assert listed(visible) == ["a", "b", "e", "c", "d"]


async def test_the_list_only_grows_at_its_end_and_is_the_same_object_while_nothing_changes(search: Search):
    made = registry([plain("a")], off=[plain("b")])
    visible = Visible(made, search)
    first = visible.visible()
    await start_turn(visible, "nothing new")
    assert visible.visible() is first
    made.add(plain("new"), origin="workflow")
    assert visible.visible() is first, "it joins with the next prompt"
    await start_turn(visible, "and now")
    assert listed(visible) == ["a", "new"]
    await start_turn(visible, "@b")
    await start_turn(visible, "no mention any more")
    assert listed(visible) == ["a", "new", "b"]


async def test_words_said_while_the_turn_runs_mention_too_and_notes_do_not(search: Search):
    made = registry([plain("a")], off=[plain("b"), plain("c")])
    visible = Visible(made, search)
    joining = ToolArrivals(visible)
    branch = Branch(Turn(), Transcript())
    branch.emit(TurnStarted(user("go")))
    await joining.before(branch)
    branch.post(user("<system-reminder>\nthe file names @c\n</system-reminder>", origin="reminder"))
    branch.drain()
    await joining.before(branch)
    assert listed(visible) == ["a"]
    branch.post(user("take @b", origin="steer"))
    branch.drain()
    await joining.before(branch)
    assert listed(visible) == ["a", "b"]


async def test_a_session_that_goes_on_lists_what_was_called_in_it(search: Search):
    made = registry([plain("a")], off=[plain("b"), plain("c")])
    visible = Visible(made, search)
    events: list[Any] = []
    branch = Branch(Turn(events.append), Transcript())
    branch.emit(TurnStarted(user("go")))
    await Agent(Script(says("", ("c", {})), says("done")), (plain("c"),), "").run(branch)
    await ToolArrivals(visible).before(branch)
    assert listed(visible) == ["a", "c"]


def test_subagents_are_told_of_less(search: Search):
    made = registry([plain("a"), plain("b", subagents=False)], off=[plain("c", subagents=False)])
    visible = Visible(made, search, for_subagent=True)
    visible.show(["c"])
    assert listed(visible) == ["a"]
    assert visible.find("b") is None


def test_what_does_not_fit_is_deferred_the_largest_first(search: Search):
    made = registry(optional=[plain("small", 100), plain("huge", 5_000), plain("large", 3_000), plain("tiny", 10)])
    visible = Visible(made, search, system="s" * 1_000, budget=6_000)
    assert listed(visible) == ["small", "large", "tiny", "tool_search"]
    assert names(visible.deferred()) == ["huge"]
    assert visible.visible()[-1].description.endswith("Unlisted now: huge.")
    assert sum(len(json.dumps([tool.description, tool.input_schema])) for tool in visible.visible()) < 5_000


def test_the_core_is_deferred_last(tmp_path: Path, search: Search):
    (tmp_path / "tools.yaml").write_text("core: [core_large]\noptional: {built: {enabled: true}}\n")
    made = Registry(lambda tool: tool, ToolFiles(tmp_path / "tools.yaml"))
    for name, size in (("core_large", 3_000), ("built", 900)):
        made.add(plain(name, size))
    made.add(plain("own", 1_500), origin="user")
    assert listed(Visible(made, search, budget=6_000)) == ["core_large", "built", "own"]
    assert listed(Visible(made, search, budget=5_500)) == ["core_large", "own", "tool_search"], (
        "people's own stay longer"
    )
    assert listed(Visible(made, search, budget=4_000)) == ["core_large", "tool_search"]
    assert listed(Visible(made, search, budget=1_000)) == ["tool_search"]


def test_later_ones_that_do_not_fit_are_deferred_too_and_the_search_joins(search: Search):
    made = registry([plain("a", 1_000)])
    visible = Visible(made, search, budget=3_000)
    assert listed(visible) == ["a"]
    made.add(plain("late", 5_000), origin="workflow")
    visible.refresh()
    assert listed(visible) == ["a", "tool_search"]
    assert names(visible.deferred()) == ["late"]


def test_what_a_person_writes_has_room_of_its_own(search: Search):
    made = registry([plain("a", 1_500)])
    visible = Visible(made, search, budget=2_000)
    assert listed(visible) == ["a"]
    for name, size in (("mine", 200), ("my_large", 600), ("my_other", 50)):
        made.add(plain(name, size), origin="project")
    visible.refresh()
    assert listed(visible) == ["a", "mine", "my_other", "tool_search"]
    assert names(visible.deferred()) == ["my_large"]


async def test_a_found_tool_can_be_called_in_the_same_turn(search: Search):
    made = registry([plain("a")], [plain("pdf_table", 9_000, "Read a table out of a PDF."), plain("mail", 9_000)])
    visible = Visible(made, search, budget=6_000)
    script = Script(
        says("", ("tool_search", {"query": "tables in pdf files"})), says("", ("pdf_table", {})), says("done")
    )
    branch = Branch(Turn(), Transcript())
    branch.emit(TurnStarted(user("go")))
    await Agent(script, visible, "", (ToolArrivals(visible),)).run(branch)
    told = [names(request.tools) for request in script.requests]
    assert told == [["a", "tool_search"], ["a", "tool_search", "pdf_table"], ["a", "tool_search", "pdf_table"]]
    outputs = [block for message in branch.transcript.messages for block in message.blocks]
    search_output, ran = [block for block in outputs if isinstance(block, ToolOutput)]
    assert [tool["name"] for tool in json.loads(search_output.content)] == ["pdf_table"]
    assert ran.content == "ran"


async def test_a_deferred_tool_that_is_called_by_its_name_runs(search: Search):
    visible = Visible(registry([plain("a")], [plain("mail", 9_000)]), search, budget=6_000)
    assert "mail" not in listed(visible)
    assert visible.find("mail") is not None
    assert "mail" in listed(visible)
    assert visible.find("nothing") is None


async def test_a_search_without_a_find_names_what_there_is(search: Search):
    made = registry([plain("a")], [plain("mail", 9_000)])
    visible = Visible(made, search, budget=6_000)
    tool = visible.find("tool_search")
    assert tool is not None
    with pytest.raises(Exception, match="No tool fits 'zebra'") as caught:
        await tool.run({"query": "zebra"}, Call("1", Branch(Turn(), Transcript())))
    assert caught.value.hint == "Unlisted tools: mail."  # pyright: ignore[reportAttributeAccessIssue]


def described(tool: Tool) -> tuple[str, str]:
    return tool.name, f"{tool.description} {' '.join(tool.facts.tags)}"


def test_the_best_match_comes_first():
    tools = [
        plain("send_mail", 0, "Send a letter by mail."),
        plain("mailbox", 0, "Look for letters."),
        plain("chart", 0, "Draw a bar chart of a table.", tags=("plot",)),
    ]
    found = {query: names(matching(query, tools, described)) for query in ("send a mail", "plotting", "§§ --")}
    assert (found["send a mail"][0], found["plotting"], found["§§ --"]) == ("send_mail", ["chart"], [])


async def test_a_tool_that_is_another_now_is_told_anew_in_its_place(tmp_path: Path, search: Search):
    home = Home(tmp_path)
    text = "from ba_tui import tool\n@tool\ndef a({}) -> str:\n    'Say.'\n    return 'a'\n"
    path = home.write("a.py", text.format("x: int"))
    home.write("b.py", text.format("").replace("def a", "def b"))
    made = home.registry()
    visible = Visible(made, search)
    before = visible.visible()
    path.write_text(text.format("x: int") + "# a remark\n")
    visible.refresh()
    assert visible.visible() is before, "a remark changes nothing for the model"
    path.write_text(text.format("y: int"))
    visible.refresh()
    assert listed(visible) == ["a", "b"]
    assert list(visible.visible()[0].input_schema["properties"]) == ["y"]
    made.close()


async def test_what_keeps_a_tool_out_is_said_once(tmp_path: Path, search: Search):
    home = Home(tmp_path)
    home.write("a.py", "1 // 0\n")
    made = home.registry()
    joining = ToolArrivals(Visible(made, search))
    events: list[Any] = []
    for _ in range(2):
        branch = Branch(Turn(events.append), Transcript())
        branch.emit(TurnStarted(user("go")))
        await joining.before(branch)
    (notice,) = [event for event in events if isinstance(event, Notice)]
    assert notice.text.startswith(f"A tool can't be used: {home.tools / 'a.py'}:1: ZeroDivisionError")
    made.close()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@web_fetch the page", ("web_fetch",)),
        ("please use @web_fetch, then @now.", ("web_fetch", "now")),
        ("(@now)", ("now",)),
        ("@now @now", ("now",)),
        ("mail me@now and a/@now and @now/file and @now.py and @@now and @nowhere", ()),
        ("@now-then", ()),
        ("", ()),
    ],
)
def test_a_mention_is_the_name_of_a_tool_after_an_at(text: str, found: tuple[str, ...]):
    assert mentioned(text, {"web_fetch", "now"}) == found


@given(st.text())
def test_no_text_upsets_the_look_for_mentions(text: str):
    assert set(mentioned(text, {"now"})) <= {"now"}
