"""Plans as trees, graphs, Mermaid and JSON: nothing is lost, nothing breaks out, circles do no harm."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.errors import UsageError
from ba_tui.core.events import PlanChanged, SubTaskChanged
from ba_tui.core.plan_folds import PlanCourse
from ba_tui.core.teamwork import Plan, PlanTask, SubTask
from ba_tui.plotting.plan_edits import added, changed, differences, faults, moved, removed, skipped
from ba_tui.plotting.plan_exports import PlanReporter, as_json, mermaid, plan_of
from ba_tui.plotting.plan_graph import drawing, graph_text, tree_lines, tree_text
from ba_tui.plotting.plan_signs import ASCII, can_resume, lasted


def plan(*steps: tuple[str, str], **named: str) -> Plan:
    """Steps by id, each with the ids that it waits for."""
    made = tuple(SubTask(id, named.get(id, f"Do {id}"), dependencies=tuple(after.split())) for id, after in steps)
    return Plan("p", PlanTask("t", "goal", "The goal"), made)


DIAMOND = plan(("a", ""), ("b", "a"), ("c", "a"), ("d", "b c"))
WORDS = st.text(max_size=30)
IDS = st.sampled_from("abcdefgh")


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any plan at all, also with circles, unknown ids and odd words."""
    ids = draw(st.lists(IDS, unique=True, min_size=1, max_size=8))
    steps = [
        SubTask(
            id,
            draw(WORDS),
            draw(WORDS),
            dependencies=tuple(draw(st.lists(IDS, max_size=3))),
            role=draw(WORDS),
            status=draw(st.sampled_from(("pending", "executing", "completed", "failed", "blocked", "skipped"))),
            result=draw(WORDS),
            error=draw(WORDS),
        )
        for id in ids
    ]
    return Plan("p", PlanTask("t", draw(WORDS), draw(WORDS)), tuple(steps))


def test_a_tree_has_chains_on_one_level() -> None:
    lines = tree_text(plan(("a", ""), ("b", "a"), ("c", "b"), ("d", "b")))
    assert lines == ["○ Do a", "↓  ○ Do b", "├─ ○ Do c", "╰─ ○ Do d"]
    assert tree_text(DIAMOND) == ["○ Do a", "├─ ○ Do b", "╰─ ○ Do c", "   ↓  ○ Do d  (also after b)"]
    assert tree_text(plan(("a", ""), ("b", "")), ASCII) == ["|- o Do a", "`- o Do b"]


def test_why_a_plan_is_made_anew_is_told_once() -> None:
    lines = PlanReporter()
    running = replace(DIAMOND, state="running")
    told = [
        lines.said(PlanChanged(running, f"{what}: the inn is full")) for what in ("Making the plan anew", "Made anew")
    ]
    assert told == ["Making the plan anew: the inn is full.", "Made anew."]
    assert lines.said(PlanChanged(running, "Made anew: too dear")) == "Made anew: too dear."


def test_a_graph_draws_layers_from_top_to_bottom() -> None:
    text = graph_text(DIAMOND, 60)
    assert [line for line in text if "Do" in line] == [
        "                │○ Do a                     │",
        "│○ Do b                     │  │○ Do c                     │",
        "                │○ Do d                     │",
    ]
    drawn = drawing(DIAMOND, 60)
    assert drawn.next("a", 0, 1) in {"b", "c"}
    assert drawn.next("b", 1, 0) == "c"
    assert drawn.next("d", 0, 1) == "d"


def test_what_follows_from_the_rest_is_no_line() -> None:
    chain = plan(("a", ""), ("b", "a"), ("c", "a b"))
    assert "".join(graph_text(chain, 40)).count("▼") == 2


@given(plans())
def test_every_step_stands_once_in_every_drawing(made: Plan) -> None:
    assert sorted(line.step.id for line in tree_lines(made)) == sorted(step.id for step in made.subtasks)
    for signs in (ASCII,):
        drawn = drawing(made, 78, signs)
        assert set(drawn.boxes) == {step.id for step in made.subtasks}
        cells = [
            (x, y)
            for box in drawn.boxes.values()
            for x in range(box.x, box.x + box.width)
            for y in range(box.y, box.y + 4)
        ]
        assert len(cells) == len(set(cells))
        assert all(x >= 0 for x, _ in cells)
        # No line runs through a box.
        assert not {(x, y) for y, line in drawn.lines.items() for x in line} & set(cells)


@given(st.integers(15, 25), st.randoms(use_true_random=False))
def test_twenty_steps_stay_readable_at_80_columns(size: int, random: object) -> None:
    steps = [(str(n), str(random.randrange(max(0, n - 4), n)) if n else "") for n in range(size)]  # type: ignore[attr-defined]
    drawn = drawing(plan(*steps), 78)
    # A few columns more where lines pass many layers.
    assert drawn.width <= 100
    assert min(box.width for box in drawn.boxes.values()) >= 18


def test_two_hundred_steps_are_laid_out() -> None:
    big = plan(*((str(n), " ".join({str(n // 2), str(max(0, n - 7))} - {str(n)})) for n in range(200)))
    assert len(tree_lines(big)) == 200
    assert len(drawing(big, 78).boxes) == 200


LINE = re.compile(
    r"---|title: \"[^\"\n\\]*\"|flowchart TD"
    r"|    s\d+\[{1,2}\"[^\"\[\]{}<>|`~&;\\\n]*(?:#\d+;[^\"\[\]{}<>|`~&;\\\n]*)*\"\]{1,2}:::[a-z]+"
    r"|    s\d+ (?:-->|-\.->) s\d+|    classDef [a-z]+ [\w:#,-]+"
)


@given(plans())
def test_no_label_breaks_out_of_mermaid(made: Plan) -> None:
    lines = mermaid(made).removesuffix("\n").split("\n")
    assert all(LINE.fullmatch(line) for line in lines), [line for line in lines if not LINE.fullmatch(line)]
    assert sum(":::" in line and line.startswith("    s") for line in lines) == len(made.subtasks)


def test_mermaid_of_words_that_want_out() -> None:
    evil = plan(("a", ""), a='"]; click a "javascript:x" %% end\n---\n<script>`*_subgraph')
    text = mermaid(evil)
    assert 's1["○ #34;#93;#59; click a #34;javascript:x#34; #37;#37; end --- #60;script#62;' in text


@given(plans())
def test_json_gives_the_same_plan_back(made: Plan) -> None:
    assert plan_of(json.loads(json.dumps(as_json(made)))) == made


def test_json_that_is_no_plan_says_where() -> None:
    data = as_json(DIAMOND)
    data["subtasks"][1]["status"] = "odd"
    with pytest.raises(UsageError, match=r"subtasks\.1\.status"):
        plan_of(data)
    with pytest.raises(UsageError, match=r"written by a newer ba \(schema 9"):
        plan_of({**as_json(DIAMOND), "schema_version": 9})


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (plan(("a", "b"), ("b", "a")), "steps wait for each other: a → b → a"),
        (plan(("a", "x")), "there is no step x"),
        (plan(("a", "a")), "the step waits for itself"),
        (plan(("a", ""), ("a", "")), "two steps have the id a"),
        (plan(("a", ""), a=" "), "what the step does is missing"),
        (plan(("a", ""), ("b", ""), b="Use {a}"), "uses the result of a, and does not wait for it"),
        (Plan("p", PlanTask("t", "")), "the plan has no step"),
    ],
)
def test_what_nobody_could_carry_out_is_named(made: Plan, said: str) -> None:
    assert said in " ".join(fault.text for fault in faults(made))


def test_changes_keep_the_plan_sound() -> None:
    without = removed(DIAMOND, "b")
    assert without.dag == {"a": (), "c": ("a",), "d": ("a", "c")}
    assert not faults(without)
    used = plan(("a", ""), ("b", "a"), b="Use {a.price} of {{a}}")
    with pytest.raises(UsageError, match="b needs the result of a"):
        removed(used, "a")
    renamed = changed(used, "a", replace(used.subtasks[0], id="first"))
    assert renamed.subtasks[1].description == "Use {first.price} of {{a}}"
    assert renamed.dag == {"first": (), "b": ("first",)}
    with pytest.raises(UsageError, match="two steps have the id b"):
        changed(used, "a", replace(used.subtasks[0], id="b"))
    left = skipped(DIAMOND, "c")
    assert skipped(left, "c") == DIAMOND
    done = DIAMOND.updated(replace(DIAMOND.subtasks[0], status="completed"))
    with pytest.raises(UsageError, match="stays as it is"):
        skipped(done, "a")
    assert [step.id for step in moved(DIAMOND, "c", -1).subtasks] == ["a", "c", "b", "d"]
    assert differences(DIAMOND, added(left, SubTask("e", "New"), "a")) == "1 added, 1 skipped"
    assert differences(DIAMOND, moved(DIAMOND, "c", -1)) == "order changed"


def test_a_course_knows_how_long_each_step_took() -> None:
    step = DIAMOND.subtasks[0]
    course = PlanCourse([PlanChanged(replace(DIAMOND, state="running"), at=10.0)])
    course.apply(SubTaskChanged("p", replace(step, status="executing"), at=20.0))
    record = course.newest
    assert record
    assert record.time_of(step).lasted(25.0) == 5.0
    course.apply(SubTaskChanged("p", replace(step, status="completed"), at=32.0))
    assert record.time_of(step).lasted(99.0) == 12.0
    assert record.time_of(DIAMOND.subtasks[1]).lasted(99.0) is None
    assert can_resume(record.plan)
    assert not course.apply(SubTaskChanged("unknown", step))
    assert [lasted(each) for each in (0.42, 12.4, 185, 3700)] == ["0.4 s", "12 s", "3:05", "1:01:40"]
