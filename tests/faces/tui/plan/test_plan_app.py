"""Plans in the app: made with /plan, approved, edited, followed live, opened, continued and written to a file."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from textual.app import App
from textual.screen import Screen

from ba_tui.core.events import AgentStarted, Answered, Asked, SubTaskChanged, TurnStarted
from ba_tui.core.messages import user
from ba_tui.core.plan_folds import PlanCourse
from ba_tui.core.ports.brain import Inventory
from ba_tui.core.questions import Question, Reply
from ba_tui.core.start import Start
from ba_tui.core.teamwork import SubTask
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.features.plans.session import PlanSession
from ba_tui.features.plans.tui.editor import PlanEditor
from ba_tui.features.plans.tui.screen import PlanScreen
from ba_tui.plotting.plan_exports import plan_of
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World
from tests.faces.tui.plan.course import TRIP, Plans, course


def lines(hand: Hand) -> str:
    """Every line of the screen."""
    strips = hand.app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips)


async def front(hand: Hand, kind: type[Screen[Any]]) -> None:
    await hand.until(lambda: isinstance(hand.app.screen, kind))


@pytest.fixture
def plans(world: World) -> Plans:
    found = Plans()
    world.brain.inventory = Inventory(features={PlanSession: found})
    return found


async def asked(hand: Hand) -> None:
    await hand.until(lambda: hand.chat.ask and hand.chat.ask.waiting)
    # Keys of a person who has read the question.
    assert hand.chat.ask
    form = hand.chat.ask._form
    assert form
    form._shown_at -= 10


async def test_f6_says_which_step_waits_for_the_user() -> None:
    fold = PlanCourse(course("flights", executing="hotel"))
    fold.apply(AgentStarted("explore", "Find a hotel near the old town", agent="main/explore-2"))
    assert fold.apply(Asked("q1", Question("permission", "Fetch?"), agent="main/explore-2/fetch-1"))
    assert not fold.apply(Asked("q2", Question("permission", "Other?"), agent="main/other-1"))
    food = TRIP.find("food")
    assert food
    fold.apply(SubTaskChanged(TRIP.id, replace(food, status="executing", attempts=1)))
    assert fold.apply(Asked("q3", Question("permission", "Search?", call_id="c1.food.1")))
    screen = PlanScreen(lambda: fold, live=lambda: True)
    async with App[None]().run_test(size=(100, 24)) as pilot:
        await pilot.app.push_screen(screen)
        await pilot.pause(0.3)
        shown = "\n".join(strip.text for strip in screen._compositor.render_strips())
        assert "2 steps waiting for you" in shown
        hotel, food_row = (
            next(line for line in shown.split("\n") if words in line) for words in ("a hotel", "vegetar")
        )
        assert "? Find a hotel near the old town  waiting for you" in hotel
        assert "waiting for you" in food_row
        for id in ("q1", "q3"):
            assert fold.apply(Answered(id, Reply("once")))
        await pilot.pause(0.3)
        assert "waiting" not in "\n".join(strip.text for strip in screen._compositor.render_strips())


async def test_a_plan_is_asked_about_carried_out_and_followed_live(world: World, plans: Plans) -> None:
    async with running(world) as hand:
        await hand.send("/plan three days in Lisbon")
        await asked(hand)
        assert plans.goals == ["three days in Lisbon"]
        assert "Find a hotel near the old town" in lines(hand)
        assert "Yes, carry it out" in lines(hand)
        await hand.press("y")
        await hand.until(lambda: plans.replies)
        assert plans.replies[0].choice == "once"
        assert plans.replies[0].edited is None
        await hand.press("f6")
        await front(hand, PlanScreen)
        plans.go.release()
        await hand.until(lambda: "1 of 7 steps done" in lines(hand))
        for _ in range(6):
            plans.go.release()
        await hand.until(lambda: "completed · 7 of 7 steps done" in lines(hand))
        await hand.press("g")
        assert "╭──" in lines(hand)
        await hand.press("enter")
        await front(hand, InspectorScreen)
        await hand.until(lambda: "Result of" in lines(hand))
        await hand.press("escape", "escape")
        await hand.idle()
        await hand.send("/plan")
        await hand.until(lambda: "/plan view (F6) opens it" in hand.hint)
        assert hand.chat.session.mode == "default"


async def test_a_plan_is_edited_before_it_is_agreed_to(world: World, plans: Plans) -> None:
    async with running(world) as hand:
        await hand.send("/plan three days in Lisbon")
        await asked(hand)
        await hand.press("e")
        await front(hand, PlanEditor)
        editor = hand.app.screen
        assert isinstance(editor, PlanEditor)
        editor.view.choose("food")
        await hand.press("d")
        assert "2 steps wait for “Collect vegetarian restaurants”: day1, day2" in lines(hand)
        await hand.press("d")
        editor.view.choose("day2")
        await hand.press("s")
        editor.view.choose("hotel")
        await hand.press("d")
        assert "book needs the result of hotel" in lines(hand)
        editor.view.choose("write")
        await hand.press("enter")
        assert editor._field
        editor._field.text = "id: write\ndoes: Write it in two pages\nafter: [day1, nowhere]\n"
        await hand.press("ctrl+s")
        assert "there is no step nowhere" in lines(hand)
        assert "Write it in two pages" in editor._field.text
        editor._field.text = "id: letter\ndoes: Write it in two pages\nafter: [day1]\n"
        await hand.press("ctrl+s", "escape")
        await hand.until(lambda: "1 added, 2 removed, 1 skipped" in lines(hand))
        await hand.press("y")
        await hand.until(lambda: plans.replies)
        edited = plans.replies[0].edited
        assert edited is not None
        plan = plan_of(json.loads(json.dumps(edited)))
        assert [step.id for step in plan.subtasks] == ["flights", "hotel", "book", "day1", "day2", "letter"]
        assert plan.find("day1") == replace(TRIP.find("day1") or SubTask("", ""), dependencies=("book",))
        skipped = plan.find("day2")
        assert skipped
        assert skipped.status == "skipped"


async def test_what_cannot_be_taken_of_a_text_is_kept_with_its_faults(world: World, plans: Plans) -> None:
    async with running(world) as hand:
        await hand.send("/plan three days in Lisbon")
        await asked(hand)
        await hand.press("e")
        await front(hand, PlanEditor)
        editor = hand.app.screen
        assert isinstance(editor, PlanEditor)
        editor.take_text("goal: Other\nsteps:\n- id: a\n  does: One\n  after: [b]\n  colour: red\n")
        await hand.until(lambda: "Line 6: colour: not known" in lines(hand))
        await hand.press("escape", "e")
        await hand.until(lambda: "could not be taken yet" in lines(hand))
        again = hand.app.screen
        assert isinstance(again, PlanEditor)
        assert "  colour: red\n#! colour: not known" in again._texts[""]
        again.take_text("goal: Other\nsteps:\n- id: a\n  does: One\n")
        await hand.press("escape")
        await hand.until(lambda: "You changed the plan" in lines(hand))
        # Words with a no are as good as before.
        await hand.press("tab", *"short", "enter")
        await hand.until(lambda: plans.replies)
        assert (plans.replies[0].choice, plans.replies[0].text) == ("deny", "short")
        await hand.idle()


async def test_an_interrupted_plan_of_an_earlier_session_is_offered(world: World, plans: Plans) -> None:
    plans.stopped = "The plan “Trip” was interrupted: 3 of 7 steps are completed."
    world.shelf.put("20260101-old", "Trip", [TurnStarted(user("/plan trip")), *course("flights", "hotel", "food")])
    async with running(world, Start(resume="20260101-old")) as hand:
        await hand.until(lambda: "was interrupted: 3 of 7 steps" in " ".join(hand.said()))
        await hand.press("ctrl+t")
        await hand.until(lambda: "Plan  3 of 7 done" in lines(hand))
        await hand.send("/plan export mermaid trip.mmd")
        await hand.until(lambda: (world.shelf.cwd / "trip.mmd").exists())
        assert "mermaid of 20260101-old" in (world.shelf.cwd / "trip.mmd").read_text()
        await hand.send("/plan resume")
        await hand.until(lambda: plans.resumed)
        assert plans.resumed == ["plan-1"]
        for _ in range(7):
            plans.go.release()
        await hand.idle()


async def test_a_wide_window_shows_the_tree_or_graph_beside_the_conversation(world: World, plans: Plans) -> None:
    async with running(world, size=(160, 40)) as hand:
        await hand.send("/plan three days in Lisbon")
        await asked(hand)
        await hand.press("y")
        side = hand.chat.main_area.side
        await hand.until(lambda: side.plan and "Find flights" in lines(hand))
        assert "Plan  0 of 7 done" in lines(hand)
        assert not side.todos.display
        plans.go.release()
        await hand.until(lambda: "Plan  1 of 7 done" in lines(hand) and "✓ Find flights" in lines(hand))
        await hand.press("f8")
        await hand.until(lambda: "╭──" in lines(hand) and "F8 tree" in lines(hand))
        await hand.press("f6")
        await front(hand, PlanScreen)
        await hand.press("escape")
        await hand.pilot.resize_terminal(120, 40)
        await hand.until(lambda: "╭──" not in lines(hand) and "Plan  1 of 7 done" in lines(hand))
        await hand.press("f8")
        await hand.until(lambda: "no room beside" in hand.hint)
        await hand.pilot.resize_terminal(160, 40)
        await hand.until(lambda: "╭──" in lines(hand))
        for _ in range(6):
            plans.go.release()
        await hand.idle()
        await hand.until(lambda: "7 of 7 done · completed" in lines(hand))


async def test_an_interrupted_plan_stands_still_beside_the_conversation(world: World, plans: Plans) -> None:
    events = [TurnStarted(user("/plan trip")), *course("flights", executing="hotel")]
    world.shelf.put("20260101-old", "Trip", events)
    async with running(world, Start(resume="20260101-old"), size=(160, 40)) as hand:
        await hand.until(lambda: "1 of 7 done · interrupted" in lines(hand))
        assert "○ Find a hotel" in lines(hand), "what was carried out then waits for its next try"
        assert "●" not in lines(hand)
        assert "F6 open · /plan resume" in lines(hand)
        assert "0.0 s" in lines(hand), "the clock stands at the newest change"


async def test_without_a_plan_there_is_nothing_to_open(world: World, plans: Plans) -> None:
    async with running(world) as hand:
        await hand.send("/plan view")
        await hand.until(lambda: "This session has no plan yet." in " ".join(hand.said()))
        await hand.send("/plan")
        await hand.until(lambda: hand.chat.session.mode == "plan")
