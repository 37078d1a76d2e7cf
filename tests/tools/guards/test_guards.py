"""What surrounds every tool: arguments checked, people asked, repetition noticed, time and size limited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ba_tui.core.errors import StopTurn, StorageError, UsageError
from ba_tui.core.events import Notice
from ba_tui.core.questions import Reply
from ba_tui.core.results import CommandText, Diff, Table, ToolResult
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Allow, Ask, Deny, Policy
from ba_tui.permissions.verdicts import JudgedCall
from ba_tui.tools.formats import ROOM
from ba_tui.tools.guards.output import output
from ba_tui.tools.guards.permission import GuardVerdict, PermissionGate
from ba_tui.tools.guards.reliability import timeout
from ba_tui.tools.guards.validate import Checker, validate
from tests.tools.conftest import Harness, answering_call

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}, "deep": {"type": "object"}},
    "required": ["path"],
    "additionalProperties": False,
}


def tool(result: Callable[[], object], *, effect: Effect = Effect.READ, seconds: float | None = 5) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        made: Any = result()
        return await made if asyncio.iscoroutine(made) else made

    return Tool("probe", "", SCHEMA, run, effect, timeout=seconds, facts=ToolFacts(target="path"))


def fine() -> ToolResult:
    return ToolResult("fine")


async def call(guarded: Tool, harness: Harness, **args: Any) -> ToolResult:
    return await guarded.run(args, answering_call("call", harness.branch, harness))


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "lacks 'path' (string)"),
        ({"path": 3}, "path: expected string, got integer 3"),
        ({"path": None}, "path: expected string, got null."),
        ({"path": "a", "limit": 0}, "limit: expected minimum 1, got 0"),
        ({"path": "a", "limit": "5"}, 'limit: expected integer, got string "5"'),
        ({"path": "a", "lmit": 5}, "unknown parameter 'lmit'; did you mean 'limit'?"),
        ({"path": "a", "x": 5}, "unknown parameter 'x'; known are path, limit, deep."),
        ({"path": "x" * 10_000_001}, "larger than 10 MB"),
        ({"path": "é" * 5_000_001}, "larger than 10 MB"),
    ],
)
async def test_arguments_are_checked_with_words_that_help(harness: Harness, args: dict[str, Any], said: str) -> None:
    result = await call(validate(tool(fine)), harness, **args)
    assert result.error is not None
    assert result.error.kind == "invalid_parameters"
    assert said in result.text
    assert len(result.text) < 600


PARTS = [
    *({"type": kind} for kind in ("string", "integer", "boolean", "number", "null", "array")),
    {"type": "string", "minLength": 1, "maxLength": 2},
    {"type": "integer", "minimum": 1, "maximum": 2, "description": "Few"},
    {"type": "integer", "exclusiveMinimum": 1},
    {"type": ["string", "null"]},
    {"type": "string", "pattern": "a"},
    {"enum": ["a", 1]},
    {},
    True,
]
VALUES = st.sampled_from(["", "a", "bb", "ccc", 0, 1, 2, 3, True, False, 1.0, 2.5, None, []])
PROPERTIES = st.dictionaries(st.sampled_from("abc"), st.sampled_from(PARTS))
RULES = st.sampled_from([{}, {"additionalProperties": False}, {"minProperties": 1}, {"anyOf": [{"required": ["b"]}]}])


@given(PROPERTIES, RULES, st.lists(st.sampled_from("ab"), unique=True), st.dictionaries(st.sampled_from("abc"), VALUES))
def test_what_plainly_fits_is_what_the_schema_allows(
    properties: dict[str, Any], rules: dict[str, Any], required: list[str], args: dict[str, Any]
) -> None:
    schema = {"type": "object", "properties": properties, "required": required, **rules}
    complaint = asyncio.run(Checker(schema).complaint(args))
    assert (complaint is None) is Draft202012Validator(schema).is_valid(args)


async def test_endless_nesting_is_refused(harness: Harness) -> None:
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"deep": deep}
    assert "nested deeper" in (await call(validate(tool(fine)), harness, path="a", deep=deep)).text


async def test_correct_arguments_pass(harness: Harness) -> None:
    assert (await call(validate(tool(fine)), harness, path="a", limit=2)).text == "fine"


def gated(harness: Harness, verdict: Callable[[Mapping[str, Any]], GuardVerdict], probe: Tool | None = None) -> Tool:
    def judge(request: JudgedCall) -> GuardVerdict:
        return verdict(request.args)

    gate = PermissionGate(
        judge, lambda rule, scope: harness.remembered.append((rule, scope)), lambda call: harness.root
    )
    return gate.guard(probe or tool(fine, effect=Effect.WRITE))


ASK = Ask("It changes files.", "probe(a)", ("writes",))


async def test_denied_is_not_run(harness: Harness) -> None:
    ran: list[int] = []
    probe = tool(lambda: ran.append(1) or fine())
    result = await call(gated(harness, lambda args: Deny("plan mode"), probe), harness, path="a")
    assert "plan mode" in result.text
    assert result.is_error
    assert not ran


async def test_what_is_asked_and_what_each_answer_does(harness: Harness) -> None:
    guarded = gated(harness, lambda args: ASK)
    answers: list[tuple[Reply, str]] = [
        (Reply("once"), "fine"),
        (Reply("session"), "fine"),
        (Reply("always", rule="probe(*)"), "fine"),
        (Reply("deny", text="use the other file"), "said: use the other file"),
        (Reply("deny"), "did not allow"),
        (Reply("text", text="later"), "said: later"),
    ]
    for reply, said in answers:
        harness.answer = lambda question, reply=reply: reply
        assert said in (await call(guarded, harness, path="a")).text
    assert harness.remembered == [("probe(a)", "session"), ("probe(*)", "always")]
    question = harness.asked[0]
    assert (question.kind, question.call_id, question.tool, question.args) == (
        "permission",
        "call",
        "probe",
        {"path": "a"},
    )
    assert (question.reason, question.rule, question.risks) == ("It changes files.", "probe(a)", ("writes",))


async def test_edited_arguments_are_checked_judged_and_said(harness: Harness) -> None:
    seen: list[Mapping[str, Any]] = []

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        seen.append(args)
        return ToolResult("ran")

    probe = Tool("probe", "", SCHEMA, run, Effect.WRITE)
    guarded = gated(harness, lambda args: Deny("never b") if args["path"] == "b" else ASK, probe)
    harness.answer = lambda question: Reply("session", edited={"path": "c"})
    result = await call(guarded, harness, path="a")
    assert result.text == 'The user changed the arguments before allowing the call: {"path": "c"}\nran'
    harness.answer = lambda question: Reply("once", edited={"path": "b"})
    assert "never b" in (await call(guarded, harness, path="a")).text
    harness.answer = lambda question: Reply("once", edited={"pth": "b"})
    assert "do not fit" in (await call(guarded, harness, path="a")).text
    assert seen == [{"path": "c"}]


async def test_a_path_that_changes_while_people_think(harness: Harness) -> None:
    verdicts = iter([ASK, Ask("It is outside the workspace.", "probe(/etc)", ("outside the workspace",))])
    harness.answer = lambda question: Reply("once")
    result = await call(gated(harness, lambda args: next(verdicts)), harness, path="a")
    assert "changed while the user was asked" in result.text


async def test_a_rule_that_cannot_be_kept_does_not_stop_the_call(harness: Harness) -> None:
    def refuse(rule: str, scope: str) -> None:
        raise StorageError("disk full")

    guarded = PermissionGate(lambda *_: ASK, refuse, lambda call: harness.root).guard(tool(fine))
    harness.answer = lambda question: Reply("always")
    assert (await call(guarded, harness, path="a")).text == "fine"
    assert any(isinstance(event, Notice) and "disk full" in event.text for event in harness.events)


async def test_asking_shows_the_diff_and_the_folder(harness: Harness) -> None:
    harness.equip(lambda request: ASK if request.tool.effect is not Effect.READ else Allow())
    harness.answer = lambda question: Reply("deny")
    harness.write("a.txt", "one\n")
    await harness.run("read_file", path="a.txt")
    await harness.run("edit_file", path="a.txt", old_string="one", new_string="two")
    await harness.run("shell", command="make")
    assert [question.preview for question in harness.asked] == [
        Diff("a.txt", "one\n", "two\n"),
        CommandText("make", "."),
    ]
    assert (harness.root / "a.txt").read_text() == "one\n"


async def test_what_cannot_work_is_not_asked_about(harness: Harness) -> None:
    harness.equip(lambda request: ASK)
    assert "does not exist" in (await harness.run("edit_file", path="no.txt", old_string="a", new_string="b")).text
    assert not harness.asked


async def test_with_the_real_policy(harness: Harness) -> None:
    policy = Policy(Workspace(harness.root))
    harness.equip(policy.judge)
    harness.write("a.txt", "one\n")
    harness.answer = lambda question: Reply("once")
    await harness.run("read_file", path="a.txt")
    assert not harness.asked
    assert not (await harness.run("write_file", path="a.txt", content="two\n")).is_error
    policy.set_mode("plan")
    assert (await harness.run("write_file", path="b.txt", content="x")).is_error
    policy.set_mode("accept-edits")
    assert not (await harness.run("write_file", path="c.txt", content="x")).is_error
    assert not (await harness.run("shell", command="touch d.txt")).is_error
    assert [question.tool for question in harness.asked] == ["write_file", "shell"]


async def test_the_second_time_warns_and_the_third_asks(harness: Harness) -> None:
    harness.write("a.txt", "one\n")
    assert "Note:" not in (await harness.run("grep", pattern="x", path="a.txt")).text
    await harness.run("glob", pattern="*")
    assert "Note: this call is the same" in (await harness.run("grep", path="a.txt", pattern="x")).text
    harness.answer = lambda question: Reply("once")
    assert "No match" in (await harness.run("grep", pattern="x", path="a.txt")).text
    assert harness.asked[-1].kind == "continue"
    assert "Note:" not in (await harness.run("grep", pattern="x", path="a.txt")).text, "after a yes it starts anew"
    assert len(harness.asked) == 1


async def test_a_no_ends_the_turn(harness: Harness) -> None:
    harness.answer = lambda question: Reply("deny", text="try the tests")
    await harness.run("glob", pattern="*")
    await harness.run("glob", pattern="*")
    with pytest.raises(StopTurn, match="try the tests"):
        await harness.run("glob", pattern="*")


async def test_edit_test_edit_test_is_honest_work(harness: Harness) -> None:
    for number in range(5):
        await harness.run("write_file", path=f"a{number}.txt", content="x")
        assert "Note:" not in (await harness.run("shell", command="ls")).text
    assert not harness.asked


async def test_the_same_edit_between_does_not_count_as_progress(harness: Harness) -> None:
    harness.answer = lambda question: Reply("once")
    for _ in range(3):
        await harness.run("write_file", path="a.txt", content="x")
        await harness.run("shell", command="ls")
    assert {question.tool for question in harness.asked} == {"write_file", "shell"}


async def test_a_failed_edit_between_is_no_progress(harness: Harness) -> None:
    harness.answer = lambda question: Reply("once")
    for number in range(3):
        await harness.run("shell", command="ls")
        await harness.run("edit_file", path=f"no{number}.txt", old_string="a", new_string="b")
    assert [question.tool for question in harness.asked] == ["shell"]


async def test_parallel_twins_and_polling_tools(harness: Harness) -> None:
    first, second = await harness.run_all(("glob", {"pattern": "*"}), ("glob", {"pattern": "*"}))
    assert "Note:" in second.text or "Note:" in first.text
    for _ in range(4):
        assert "Note:" not in (await harness.run("now")).text
    assert not harness.asked


async def test_too_slow_gives_what_was_reported(harness: Harness) -> None:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        call.report("half \x1b[31mway")
        await asyncio.Event().wait()
        return fine()

    result = await call(timeout(Tool("slow", "", SCHEMA, run, timeout=0.05)), harness, path="a")
    assert "took longer than 0.05 s" in result.text
    assert result.text.endswith("(partial):\nhalf way")
    assert result.meta["partial"]


async def test_a_tool_that_ignores_cancelling_does_not_hold_the_turn(harness: Harness) -> None:
    released = asyncio.Event()

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        raise ValueError("late and unheard")

    guarded = timeout(Tool("deaf", "", SCHEMA, run, timeout=60))
    running = asyncio.create_task(call(guarded, harness, path="a"))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert "took longer" in (await call(timeout(Tool("deaf", "", SCHEMA, run, timeout=0.05)), harness, path="a")).text
    released.set()


@pytest.mark.parametrize(
    "raised",
    [ValueError("\ud800 \x1b]0;x\x07"), SystemExit(3), KeyboardInterrupt(), RecursionError(), UsageError("no")],
)
@pytest.mark.parametrize("seconds", [None, 5])
async def test_whatever_is_raised_becomes_a_result(
    harness: Harness, raised: BaseException, seconds: float | None
) -> None:
    def fail() -> ToolResult:
        raise raised

    result = await call(output(timeout(tool(fail, seconds=seconds))), harness, path="a")
    assert result.is_error
    result.text.encode()
    assert "\x1b" not in result.text


@pytest.mark.parametrize("returned", [None, "text", 3, {"text": "x"}])
async def test_whatever_is_returned_becomes_a_result(harness: Harness, returned: object) -> None:
    result = await call(output(tool(lambda: returned)), harness, path="a")
    assert result.is_error
    assert "not a result" in result.text


async def test_a_display_of_no_known_kind_is_dropped(harness: Harness) -> None:
    odd: Any = object()
    made = ToolResult("fine", odd, changes=odd, error=odd, attachments=(odd,))
    assert await call(output(tool(lambda: made)), harness, path="a") == ToolResult("fine")


async def test_text_is_cleaned_and_cut_at_line_ends(harness: Harness) -> None:
    lines = "".join(f"line {number} \x1b[31mred\x1b[0m\n" for number in range(10_000))
    table = Table(("a",), (("\ud800", object(), float("nan")),))
    made = ToolResult(lines + "\0\ud800 end", table, summary="two\nlines" * 50, meta={"x": {1, 2}})
    result = await call(output(tool(lambda: made)), harness, path="a")
    assert len(result.text) <= ROOM["standard"]
    assert result.text.startswith("line 0 red\nline 1 red\n")
    assert result.text.endswith(" end")
    before, after = result.text.split("left out …]\n")
    assert before.rsplit("\n", 1)[0].endswith(" red")
    assert after.startswith("line ")
    assert "\x1b" not in result.text
    assert "\n" not in result.summary
    assert len(result.summary) <= 100
    assert isinstance(result.display, Table)
    assert all(isinstance(cell, str) for cell in result.display.rows[0])
