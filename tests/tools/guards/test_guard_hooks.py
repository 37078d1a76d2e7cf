"""Hooks around tools: they deny, ask, rewrite and comment; what they allow is judged all the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from ba_tui.core.errors import StopTurn
from ba_tui.core.events import Judged, Notice
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import ToolResult
from ba_tui.core.text.json_text import args_hash
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.features.hooks.guard import hooking
from ba_tui.features.hooks.runner import Hooks, HookTurns, SessionFacts
from ba_tui.permissions.policy import Allow, Ask, Deny
from ba_tui.permissions.verdicts import JudgedCall
from ba_tui.settings.hooks import Hook
from ba_tui.tools.guards.permission import GuardVerdict, PermissionGate
from ba_tui.tools.guards.pipeline import guarded
from ba_tui.tools.guards.repeats import repeats
from tests.tools.conftest import Harness, answering_call

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
ALLOW = Allow()


class Scene:
    """One file tool within all guards, with hooks; it keeps what it was run with."""

    def __init__(self, harness: Harness, *hooks: Hook, verdict: GuardVerdict = ALLOW) -> None:
        self.harness = harness
        self.seen: list[Mapping[str, Any]] = []
        self.judged: list[Mapping[str, Any]] = []
        self.verdict = verdict
        self.gives = ToolResult("written")
        facts = SessionFacts(
            "s", harness.root / "events", harness.root, harness.root, harness.environment, lambda: "default"
        )

        self.hooks = Hooks(hooks, facts, str)

        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            self.seen.append(args)
            return self.gives

        facts = ToolFacts(target="path", paths=("path",))
        tool = Tool("write_file", "", SCHEMA, run, Effect.WRITE, facts=facts)
        gate = PermissionGate(self._judge, lambda rule, scope: None, lambda call: harness.root)
        self.tool = guarded(tool, gate.guard, repeats(()), hooks=hooking(self.hooks))

    def _judge(self, request: JudgedCall) -> GuardVerdict:
        self.judged.append(request.args)
        return self.verdict

    async def run(self, **args: Any) -> ToolResult:
        return await self.tool.run(args, answering_call("call", self.harness.branch, self.harness))

    @property
    def audit(self) -> list[tuple[str, str, str, str]]:
        events = [event for event in self.harness.events if isinstance(event, Judged) and event.by == "hook"]
        return [(event.verdict, event.rule, event.reason, event.hash) for event in events]


def answers(event: str = "pre_tool", matcher: str = "", **specific: object) -> Hook:
    return Hook(event, f"echo '{json.dumps({'hookSpecificOutput': specific})}'", matcher)


async def test_a_denied_call_does_not_run_and_the_model_reads_why(harness: Harness) -> None:
    scene = Scene(harness, Hook("pre_tool", "echo not in main >&2; exit 2", "Write"))
    result = await scene.run(path="a")
    assert result.error is not None
    assert result.error.kind == "permission_denied"
    assert "A hook of the user denied this call: not in main" in result.text
    assert (scene.seen, scene.judged) == ([], [])
    assert scene.audit == [("deny", "echo not in main >&2; exit 2", "not in main", args_hash({"path": "a"}))]


async def test_a_hook_for_another_tool_costs_nothing(harness: Harness) -> None:
    scene = Scene(harness, Hook("pre_tool", "exit 2", "Bash"))
    assert (await scene.run(path="a")).text == "written"


async def test_asking_brings_the_person_in(harness: Harness) -> None:
    scene = Scene(harness, answers(permissionDecision="ask", permissionDecisionReason="it is Friday"))
    harness.answer = lambda question: Reply("deny", "on Monday")
    assert "on Monday" in (await scene.run(path="a")).text
    assert [(question.reason, question.rule) for question in harness.asked] == [("a hook asks: it is Friday", None)]
    harness.answer = lambda question: Reply("once")
    assert (await scene.run(path="a")).text == "written"


@pytest.mark.parametrize("verdict", [Deny("a rule says no"), Ask("a rule asks", None)])
async def test_what_a_hook_allows_is_judged_all_the_same(harness: Harness, verdict: GuardVerdict) -> None:
    scene = Scene(harness, answers(permissionDecision="allow"), verdict=verdict)
    harness.answer = lambda question: Reply("deny")
    assert (await scene.run(path="a")).is_error
    assert scene.seen == []
    assert scene.audit == []


async def test_rewritten_arguments_are_checked_judged_shown_and_told(harness: Harness) -> None:
    scene = Scene(harness, answers(updatedInput={"path": "bä"}), verdict=Ask("it writes", None))
    harness.answer = lambda question: Reply("once")
    result = await scene.run(path="a", content="x")
    assert result.text == 'A hook of the user changed the arguments of the call: {"path": "bä"}\nwritten'
    assert (scene.judged[0], scene.seen) == ({"path": "bä"}, [{"path": "bä"}])
    question = harness.asked[0]
    assert question.args == {"path": "bä"}
    assert question.rewritten.startswith("the hook “echo ")


async def test_rewritten_arguments_that_do_not_fit_do_not_run(harness: Harness) -> None:
    scene = Scene(harness, answers(updatedInput={"path": 3}))
    result = await scene.run(path="a")
    assert "changed the arguments, but they do not fit: path: expected string, got integer 3" in result.text
    assert (scene.seen, scene.judged) == ([], [])


@pytest.mark.parametrize("folder", ["", "sub"])
async def test_a_hook_is_told_the_folder_of_the_session(harness: Harness, folder: str) -> None:
    scene = Scene(harness, Hook("pre_tool", "cat > told"))
    harness.branch.transcript.cwd = str(harness.root / folder) if folder else None
    await scene.run(path="a")
    assert json.loads((harness.root / "told").read_text())["cwd"] == str(harness.root / folder)


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"path": "b"}, "b"),
        ({"file_path": "FOLDER/c"}, "FOLDER/c"),
        ({"path": "b", "file_path": "FOLDER/a"}, "b"),
        ({"path": "b", "file_path": "FOLDER/c"}, "FOLDER/c"),
    ],
)
async def test_the_path_that_a_hook_changed_counts(harness: Harness, changed: dict[str, str], path: str) -> None:
    folder = str(harness.root)
    scene = Scene(
        harness, answers(updatedInput={name: each.replace("FOLDER", folder) for name, each in changed.items()})
    )
    await scene.run(path="a")
    assert scene.seen == [{"path": path.replace("FOLDER", folder)}]


async def test_claude_codes_name_of_the_path_is_there_and_may_be_rewritten(harness: Harness) -> None:
    scene = Scene(harness, Hook("pre_tool", "cat > told"))
    await scene.run(path="a")
    told = json.loads((harness.root / "told").read_text())
    assert told["tool_input"] == {"path": "a", "file_path": str(harness.root / "a")}
    assert (told["tool_name"], told["tool_use_id"]) == ("write_file", "call")
    both = {"path": "a", "file_path": "/moved", "content": "x"}
    scene = Scene(harness, answers(updatedInput=both))
    await scene.run(path="a")
    assert scene.seen == [{"path": "/moved", "content": "x"}]


async def test_a_result_is_commented(harness: Harness) -> None:
    hook = Hook("post_tool", "cat > told; echo lint failed >&2; exit 2")
    scene = Scene(harness, hook, answers("post_tool", additionalContext="run the tests"))
    result = await scene.run(path="a")
    assert result.text.split("\n\n") == [
        "written",
        "A hook of the user objects to this result: lint failed",
        "A hook of the user adds: run the tests",
    ]
    told = json.loads((harness.root / "told").read_text())
    assert told["tool_response"] == {"text": "written", "summary": "", "is_error": False}
    scene.verdict = Deny("no")
    assert "objects" not in (await scene.run(path="a")).text, "there is no result to comment on"


async def test_hooks_may_say_no_to_a_question_but_not_yes(harness: Harness) -> None:
    def hook(behavior: str) -> Hook:
        return answers("permission_request", decision={"behavior": behavior, "message": "not today"})

    def nobody(question: Question) -> Reply:
        pytest.fail("the user was asked")

    scene = Scene(harness, hook("deny"), verdict=Ask("it writes", None))
    harness.answer = nobody
    assert "A hook of the user denied this call: not today" in (await scene.run(path="a")).text
    assert scene.audit[0][0] == "deny"
    scene = Scene(harness, hook("allow"), verdict=Ask("it writes", None))
    harness.answer = lambda question: Reply("deny", "I say no")
    assert "I say no" in (await scene.run(path="a")).text


async def test_words_before_a_call_reach_the_model_with_its_result(harness: Harness) -> None:
    scene = Scene(harness, answers(additionalContext="mind the tests"))
    assert (await scene.run(path="a")).text == "written\n\nA hook of the user adds: mind the tests"


async def test_a_hook_that_ends_the_turn_after_a_call_leaves_its_result(harness: Harness) -> None:
    stop = Hook("post_tool", """echo '{"continue": false, "stopReason": "enough"}'""")
    scene = Scene(harness, stop)
    assert (await scene.run(path="a")).text == "written"
    with pytest.raises(StopTurn, match="A hook ended the turn: enough"):
        await HookTurns(scene.hooks).before(harness.branch)


async def test_a_hook_may_end_the_turn(harness: Harness) -> None:
    scene = Scene(harness, Hook("pre_tool", """echo '{"continue": false, "stopReason": "enough"}'"""))
    with pytest.raises(StopTurn, match="enough"):
        await scene.run(path="a")


async def test_a_broken_hook_is_told_and_the_call_goes_on(harness: Harness) -> None:
    scene = Scene(harness, Hook("pre_tool", "exit 9"), Hook("post_tool", "echo '{'"))
    assert (await scene.run(path="a")).text == "written"
    told = [event.text for event in harness.events if isinstance(event, Notice)]
    assert len(told) == 2
    assert told[0] == "The hook “exit 9” failed (exit 9)."


async def test_a_patch_is_shown_once_for_each_file(harness: Harness) -> None:
    facts = SessionFacts(
        "s", harness.root / "events", harness.root, harness.root, harness.environment, lambda: "default"
    )
    guards = hooking(Hooks([Hook("pre_tool", "grep -q 'file_path.*/secret' && exit 2; exit 0", "Edit")], facts, str))
    patch = guards.before(harness.tools["apply_patch"])
    harness.write("a.txt", "one\n")
    harness.write("secret", "one\n")
    head = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n"
    call = answering_call("call", harness.branch, harness)
    both = await patch.run({"patch": f"{head}*** Update File: secret\n@@\n-one\n+two\n*** End Patch"}, call)
    assert "A hook of the user denied this call" in both.text
    assert not (await patch.run({"patch": f"{head}*** End Patch"}, call)).is_error
    assert ((harness.root / "a.txt").read_text(), (harness.root / "secret").read_text()) == ("two\n", "one\n")


async def test_what_a_hook_says_of_a_result_is_not_cut_with_it(harness: Harness) -> None:
    hook = Hook("post_tool", "cat > told; echo look again >&2; exit 2")
    scene = Scene(harness, hook)
    scene.gives = ToolResult("line\n" * 20_000)
    result = await scene.run(path="a")
    assert len(result.text) < 50_000
    assert result.text.endswith("A hook of the user objects to this result: look again")
    assert json.loads((harness.root / "told").read_text())["tool_response"]["text"] in result.text


async def test_hooks_after_a_call_hear_of_no_call_that_was_not_let_through(harness: Harness) -> None:
    hooks = (Hook("pre_tool", "exit 2"), Hook("post_tool_failure", "touch told"))
    assert (await Scene(harness, *hooks).run(path="a")).is_error
    assert (await Scene(harness, hooks[1]).run(nothing="a")).is_error
    assert not (harness.root / "told").exists()
