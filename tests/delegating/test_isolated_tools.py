"""The tools of an agent in a copy: they work there, and every rule about the project holds for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from ba_tui.core.calls import callable_tool, run_call
from ba_tui.core.events import Asked, Event, Mode
from ba_tui.core.messages import ToolUse
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.questions import Reply
from ba_tui.core.results import ToolResult
from ba_tui.core.teamwork import ProjectCopy
from ba_tui.core.tool import Call, Tool
from ba_tui.core.turn import Branch
from ba_tui.permissions.answers import bundled_rules
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.resources import bundled
from ba_tui.tools.definitions import load_definitions
from ba_tui.tools.guards.pipeline import HookGuards, SharedGuards, pipeline, unhooked
from ba_tui.tools.guards.reliability import Breakers
from ba_tui.tools.guards.repeats import CallMemory
from ba_tui.tools.isolated_tools import IsolatedTools
from ba_tui.tools.registry import Registry, ToolFiles
from ba_tui.tools.shells import Shell
from ba_tui.tools.toolbox import SessionPlace, builtin_tools
from tests.script import Script, conversation

DEFINITIONS = load_definitions(bundled("config") / "prompts" / "tools")
ADD = "*** Begin Patch\n*** Add File: {}\n+new\n*** End Patch\n"


class Place:
    """A project and a copy of it, with the tools of an agent in there. ``heard``: arguments that hooks were given;
    ``rewrites``: what they change."""

    def __init__(self, folder: Path) -> None:
        self.project, self.copy = folder / "project", folder / "copies" / "files"
        for root in (self.project, self.copy):
            (root / "src").mkdir(parents=True)
            (root / "src" / "a.py").write_text("one = 1\n")
            (root / "kept.txt").write_text("kept\n")
        (folder / "other").mkdir()
        (folder / "other" / "b.txt").write_text("elsewhere\n")
        self.heard: list[dict[str, Any]] = []
        self.rewrites: dict[str, Any] = {}

    def tools(self, *rules: tuple[str, str], mode: Mode = "default") -> Registry:
        workspace = Workspace(self.project)
        given = [RuleLine(rule, verdict, "test", layer="user") for verdict, rule in rules]
        policy = Policy(workspace, [*bundled_rules(), *given], mode)
        place = SessionPlace(workspace, Shell(None, {}), None, denied=policy.denies_reading)
        files = ToolFiles(bundled("config") / "tools.yaml")
        self.session = Registry(pipeline(place, policy.judge, policy.remember), files)
        for tool in builtin_tools(DEFINITIONS, place):
            self.session.add(tool)
        shared = SharedGuards(CallMemory(workspace.resolve), Breakers())
        hooks = HookGuards(self._before, unhooked)
        made = IsolatedTools(DEFINITIONS, place, policy.judge, policy.remember, shared, lambda: self.session, hooks)
        return made.registry_of(ProjectCopy(self.project, self.copy))

    def _before(self, tool: Tool) -> Tool:
        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            self.heard.append(dict(args))
            return await tool.run({**args, **self.rewrites}, call)

        return replace(tool, run=run)


async def calls(
    tools: Registry, *made: tuple[str, dict[str, Any]], answer: Literal["once", "deny"] = "deny"
) -> tuple[list[str], list[Event]]:
    """What each call brought, and the events; questions get ``answer``."""
    texts = list[str]()

    async def work(branch: Branch) -> None:
        for number, (name, args) in enumerate(made):
            use = ToolUse(str(number), name, args)
            tool = callable_tool(use, tools.get_tool(name), list(tools.tools().values()))
            texts.append((await run_call(tool, use, Call(use.id, branch))).text)

    turn = conversation(Script()).beside(work)
    events = list[Event]()
    async for event in turn:
        events.append(event)
        if isinstance(event, Asked):
            turn.answer(event.ask_id, Reply(answer))
    return texts, events


def asked(events: Sequence[Event]) -> list[Asked]:
    return [event for event in events if isinstance(event, Asked)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_it_changes_its_copy_without_a_question_and_never_the_project(place: Place) -> None:
    tools, copy, project = place.tools(), place.copy, place.project
    _, events = await calls(
        tools,
        ("write_file", {"path": "new.txt", "content": "relative"}),
        ("write_file", {"path": str(project / "whole.txt"), "content": "as the project calls it"}),
        ("write_file", {"path": str(copy / "own.txt"), "content": "as the copy calls it"}),
        ("read_file", {"path": "src/a.py"}),
        ("edit_file", {"path": str(project / "src" / "a.py"), "old_string": "one = 1", "new_string": "one = 2"}),
        ("apply_patch", {"patch": ADD.format("patched.txt")}),
    )
    assert asked(events) == []
    assert {
        name: (copy / name).exists() for name in ("new.txt", "whole.txt", "own.txt", "patched.txt")
    } == dict.fromkeys(("new.txt", "whole.txt", "own.txt", "patched.txt"), True)
    assert (copy / "src" / "a.py").read_text() == "one = 2\n"
    assert sorted(path.name for path in project.iterdir()) == ["kept.txt", "src"]
    assert (project / "src" / "a.py").read_text() == "one = 1\n"


async def test_a_path_in_the_copy_is_judged_as_that_of_the_project_however_it_is_written(place: Place) -> None:
    tools = place.tools(("deny", f"write_file({place.project}/src/**)"), ("deny", "read_file(kept.txt)"))
    (place.copy / "link.txt").symlink_to("kept.txt")
    spellings = ("src/x.py", str(place.copy / "src" / "x.py"), str(place.project / "src" / "x.py"), "new/../src/x.py")
    wanted = [("write_file", {"path": path, "content": "no"}) for path in spellings]
    reads = [("read_file", {"path": path}) for path in ("kept.txt", str(place.copy / "kept.txt"), "link.txt")]
    texts, _ = await calls(tools, *wanted, *reads)
    assert ["Denied by the rule" in text for text in texts] == [True] * 7
    assert not (place.copy / "src" / "x.py").exists()
    (found,), _ = await calls(tools, ("grep", {"pattern": "kept"}))
    assert "kept.txt:" not in found


async def test_nothing_outside_the_copy_is_written_and_reading_there_asks(place: Place) -> None:
    tools, other = place.tools(), place.project.parent / "other"
    (place.copy / "out").symlink_to(other)
    (place.copy / "gone.txt").symlink_to(other / "new.txt")
    outside = ("out/b.txt", "gone.txt", "../other/b.txt", str(other / "b.txt"))
    texts, events = await calls(
        tools, *(("write_file", {"path": path, "content": "no"}) for path in outside), answer="once"
    )
    assert all("changes nothing outside that copy" in text for text in texts)
    assert asked(events) == []
    assert (other / "b.txt").read_text() == "elsewhere\n"
    assert not (other / "new.txt").exists()
    texts, events = await calls(tools, *(("read_file", {"path": path}) for path in ("out/b.txt", "../other/b.txt")))
    assert len(asked(events)) == 2
    assert not any("elsewhere" in text for text in texts)


@pytest.mark.parametrize("path", ["{copy}/x.txt", "{project}/x.txt", "../x.txt", "src/../x.txt", "~/x.txt"])
async def test_a_patch_names_plain_paths_only(place: Place, path: str) -> None:
    patch = ADD.format(path.format(copy=place.copy, project=place.project))
    (text,), _ = await calls(place.tools(), ("apply_patch", {"patch": patch}))
    assert "a patch names files by paths from its folder" in text
    assert not (place.copy / "x.txt").exists()


async def test_ask_rules_ask_and_no_answer_becomes_a_rule_for_the_project(place: Place) -> None:
    tools = place.tools(("ask", "write_file(src/**)"))
    _, events = await calls(tools, ("write_file", {"path": "src/new.py", "content": "x"}), answer="once")
    (question,) = [event.question for event in asked(events)]
    assert (question.rule, question.session_rule) == (None, None)
    assert (place.copy / "src" / "new.py").read_text() == "x"


async def test_plan_mode_holds_and_secrets_stay_secret(place: Place) -> None:
    (place.copy / ".env").write_text("TOKEN=abc\n")
    texts, _ = await calls(
        place.tools(mode="plan"), ("write_file", {"path": "n.txt", "content": "x"}), ("read_file", {"path": ".env"})
    )
    assert "Plan mode only reads" in texts[0]
    assert "abc" not in texts[1]
    assert not (place.copy / "n.txt").exists()


async def test_hooks_are_told_the_paths_of_the_project(place: Place) -> None:
    tools = place.tools()
    await calls(
        tools, ("read_file", {"path": str(place.copy / "src" / "a.py")}), ("read_file", {"path": "./src/../kept.txt"})
    )
    assert [args["path"] for args in place.heard] == ["src/a.py", "kept.txt"]


async def test_it_has_tools_for_files_and_no_commands_and_loses_what_is_switched_off(place: Place) -> None:
    tools = place.tools()
    names = tools.names()
    assert {"read_file", "write_file", "edit_file", "apply_patch", "grep", "glob"} <= names
    assert names.isdisjoint({"shell", "python", "delegate_task", "shell_output", "query"})
    place.session.switch("write_file", on=False)
    (text,), _ = await calls(tools, ("write_file", {"path": "x.txt", "content": "x"}))
    assert "switched write_file off" in text
    assert not (place.copy / "x.txt").exists()


async def test_what_a_hook_makes_of_a_call_is_judged_and_opened_in_the_copy_too(place: Place) -> None:
    tools = place.tools(("deny", "write_file(kept.txt)"))
    place.rewrites = {"patch": ADD.format(place.project / "x.txt")}
    texts, _ = await calls(tools, ("apply_patch", {"patch": ADD.format("x.txt")}))
    assert "a patch names files by paths from its folder" in texts[0]
    place.rewrites = {"path": str(place.copy / "kept.txt")}
    texts, events = await calls(tools, ("write_file", {"path": "new.txt", "content": "x"}), answer="once")
    assert not asked(events)
    assert "Denied by the rule" in texts[0]
    place.rewrites = {"path": str(place.project / "src" / "n.py")}
    await calls(tools, ("write_file", {"path": "new.txt", "content": "x"}))
    assert (place.copy / "src" / "n.py").exists()
    assert not (place.project / "src" / "n.py").exists()
    assert not (place.project / "x.txt").exists()


async def test_protected_files_ask_in_a_copy_as_in_the_project(place: Place) -> None:
    modes: tuple[Mode, ...] = ("default", "accept-edits")
    for mode in modes:
        wanted = [
            ("write_file", {"path": path, "content": "x"}) for path in (".git/hooks/pre-commit", ".ba/config.yaml")
        ]
        _, events = await calls(place.tools(mode=mode), *wanted)
        assert [event.question.tool for event in asked(events)] == ["write_file"] * 2
    assert not (place.copy / ".git").exists()
