"""Prompts and turns: sending, queueing, steering, interrupting, failing."""

from __future__ import annotations

import asyncio
import threading
from itertools import cycle, islice
from string import ascii_lowercase

from textual.events import Key

from ba_tui.cli.commands import app_parts
from ba_tui.core.errors import AuthFailed, PromptRefused, StorageError, UsageError
from ba_tui.core.events import TurnStarted
from ba_tui.core.start import Start
from ba_tui.faces.tui.app import BaApp
from ba_tui.faces.tui.transcript.records import End, Prompt
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World


async def test_a_prompt_is_answered(world: World) -> None:
    world.script.turns = [["Hello ", "there."]]
    async with running(world, size=(100, 24)) as hand:
        await hand.send("hi")
        await hand.idle()
        assert hand.said()[:2] == ["hi", "Hello there."]
        assert "scripted model" in hand.status
        await hand.until(lambda: "↑11.2k ↓80" in hand.status)


async def test_enter_before_the_session_is_there_waits_and_is_sent(world: World, services: threading.Event) -> None:
    async with running(world, ready=False) as hand:
        await hand.send("early")
        assert list(hand.chat.turns.waiting) == ["early"]
        services.set()
        await hand.opened()
        await hand.until(lambda: "Done." in hand.said())
        assert hand.said()[0] == "early"


MOST_KEYS = 1_000


async def hammered(app: BaApp) -> str:
    """Letters, now and then Enter, from the moment that there is a screen until the session is there."""
    typed = ""
    while not app.screen_stack:  # noqa: ASYNC110 - what comes this early has no event
        await asyncio.sleep(0)
    for letter in islice(cycle(ascii_lowercase), MOST_KEYS):
        typed += letter
        app.post_message(Key(letter, letter))
        if len(typed) % 7 == 0:
            app.post_message(Key("enter", "\r"))
        # So often that some keys are on their way, to a screen or to its input, whenever one takes over.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if app.chat and app.chat.early is None and app.chat.turns.ready:
            break
    return typed


async def test_nothing_is_lost_that_is_typed_and_sent_while_the_app_starts(world: World) -> None:
    app = BaApp(world.connect, Start(), app_parts)
    typing = asyncio.create_task(hammered(app))
    async with app.run_test(size=(80, 24)) as pilot:
        typed = await typing
        hand = Hand(app, pilot)
        await hand.opened()
        await hand.idle()
        said = [record.text for record in hand.chat.transcript.records if isinstance(record, Prompt)]
        assert "".join((*said, hand.text)).replace("\n", "") == typed


async def test_what_was_typed_before_the_doors_open_warms_the_model_too(
    world: World, services: threading.Event
) -> None:
    async with running(world, ready=False) as hand:
        await hand.press("x")
        await hand.until(lambda: hand.text == "x")
        await hand.press("backspace")
        await hand.until(lambda: not hand.text)
        services.set()
        await hand.until(lambda: world.brain.warmed)


async def test_no_session_is_made_without_a_prompt(world: World) -> None:
    async with running(world) as hand:
        await hand.press("shift+tab", "x")
        await hand.until(lambda: hand.chat.session.mode == "accept-edits")
        await hand.until(lambda: world.brain.warmed)
    assert not any(journal.events for journal in world.shelf.journals.values())


async def test_the_mode_chosen_before_the_first_prompt_is_kept_with_it(world: World) -> None:
    async with running(world) as hand:
        await hand.press("shift+tab")
        await hand.until(lambda: hand.chat.session.mode == "accept-edits")
        await hand.send("go")
        await hand.idle()
    events = world.shelf.journals["00000001new"].events
    assert [event.type for event in events][:2] == ["mode_changed", "turn_started"]


async def test_prompts_wait_while_a_turn_runs_and_follow_it(world: World) -> None:
    gate = asyncio.Event()
    world.script.turns = [["one", gate], ["two"], ["three"]]
    async with running(world) as hand:
        await hand.send("a")
        await hand.until(lambda: world.script.requests)
        await hand.send("b")
        await hand.send("c")
        assert hand.chat.queue.display
        assert "2 waiting" in hand.status
        await hand.send("d" * 200)
        await hand.until(lambda: "d…" in str(hand.chat.queue.content))
        await hand.press("up", "ctrl+u")
        gate.set()
        await hand.until(lambda: "three" in hand.said())
        assert not hand.chat.queue.display


async def test_up_takes_the_newest_waiting_prompt_back(world: World) -> None:
    gate = asyncio.Event()
    world.script.turns = [["one", gate]]
    async with running(world) as hand:
        await hand.send("a")
        await hand.until(lambda: world.script.requests)
        await hand.send("b")
        await hand.send("c")
        await hand.press("up")
        assert hand.text == "c"
        assert list(hand.chat.turns.waiting) == ["b"]
        gate.set()


async def test_enter_on_empty_input_steers_the_running_turn(world: World) -> None:
    gate = asyncio.Event()
    world.script.turns = [["one", gate], ["after steering"]]
    async with running(world) as hand:
        await hand.send("a")
        await hand.until(lambda: world.script.requests)
        await hand.send("more")
        await hand.press("enter")
        assert not hand.chat.turns.waiting
        gate.set()
        await hand.until(lambda: "after steering" in hand.said())
    events = world.shelf.journals["00000001new"].events
    assert sum(isinstance(event, TurnStarted) for event in events) == 1


def shown(hand: Hand) -> str:
    view = hand.chat.transcript
    return "\n".join(view.render_line(y).text.rstrip() for y in range(view.size.height))


async def test_a_steered_message_is_in_the_conversation_before_the_model_reads_it(world: World) -> None:
    gate = asyncio.Event()
    world.script.turns = [["one", gate], ["after steering"]]
    async with running(world) as hand:
        await hand.send("first")
        await hand.until(lambda: "one" in shown(hand))
        await hand.send("second")
        await hand.press("enter")
        await hand.until(lambda: "↳ second" in shown(hand))
        assert "Sent. The model reads this after the current step." in shown(hand)
        gate.set()
        await hand.until(lambda: "after steering" in hand.said())
        await hand.idle()
        assert shown(hand).count("second") == 1
        assert "Sent." not in shown(hand)
        assert shown(hand).index("one") < shown(hand).index("second") < shown(hand).index("after steering")


async def test_a_steered_message_that_nobody_read_leaves_the_conversation_for_the_queue(world: World) -> None:
    gate = asyncio.Event()
    world.script.turns = [["one", gate]]
    async with running(world) as hand:
        await hand.send("first")
        await hand.until(lambda: "one" in shown(hand))
        await hand.send("second")
        await hand.press("enter")
        await hand.until(lambda: "↳ second" in shown(hand))
        await hand.press("escape")
        await hand.idle()
        await hand.until(lambda: "second" not in shown(hand))
        assert list(hand.chat.turns.waiting) == ["second"]


async def test_words_that_joined_too_late_to_be_heard_wait_again(world: World) -> None:
    world.script.turns = [["half an answer", asyncio.Event()], ["next"]]
    async with running(world) as hand:
        await hand.send("a")
        await hand.until(lambda: "half an answer" in hand.said())
        for words in ("b", "c"):
            await hand.send(words)
            await hand.press("enter")
        await hand.send("d")
        await hand.press("escape")
        await hand.idle()
        assert list(hand.chat.turns.waiting) == ["b", "c", "d"]
        assert hand.chat.queue.display
        assert "paused" in hand.status


async def test_escape_interrupts_keeps_the_partial_answer_and_holds_the_queue(world: World) -> None:
    world.script.turns = [["half an answer", asyncio.Event()], ["next"]]
    async with running(world) as hand:
        await hand.send("a")
        await hand.until(lambda: "half an answer" in hand.said())
        await hand.send("b")
        await hand.press("escape")
        await hand.idle()
        assert "half an answer" in hand.said()
        assert list(hand.chat.turns.waiting) == ["b"]
        assert "paused" in hand.status
        await hand.press("enter")
        await hand.until(lambda: "next" in hand.said())


async def test_a_failed_turn_says_why_and_the_prompt_is_one_key_away(world: World) -> None:
    world.script.turns = [[AuthFailed("The key was refused.", "Set ANTHROPIC_API_KEY.")]]
    async with running(world) as hand:
        await hand.send("precious words")
        await hand.idle()
        ends = [getattr(record, "error", None) for record in hand.chat.transcript.records]
        assert any(error and "refused" in error.message for error in ends)
        await hand.press("up")
        assert hand.text == "precious words"


async def test_a_start_that_fails_says_why_and_enter_tries_again(world: World) -> None:
    faults = [UsageError("config.yaml line 3: model is no text.", "Write model: provider/name.")]

    def gate() -> None:
        if faults:
            raise faults.pop()

    world.gate = gate
    async with running(world, ready=False) as hand:
        await hand.until(lambda: any("line 3" in text for text in hand.said()))
        await hand.press("enter")
        await hand.opened()


async def test_the_prompt_of_the_command_line_is_sent_at_once(world: World) -> None:
    async with running(world, Start(prompt="from the shell")) as hand:
        await hand.until(lambda: "Done." in hand.said())
        assert hand.said()[0] == "from the shell"


async def test_a_crash_of_a_worker_is_told_and_the_app_goes_on(world: World) -> None:
    async with running(world) as hand:

        async def crash() -> None:
            raise ZeroDivisionError("of our own making")

        hand.chat.run_worker(crash, exit_on_error=False)
        await hand.until(lambda: any("ZeroDivisionError" in text for text in hand.said()))
        await hand.send("still here?")
        await hand.until(lambda: "Done." in hand.said())


async def test_empty_prompts_go_nowhere(world: World) -> None:
    async with running(world) as hand:
        await hand.press("enter")
        await hand.send("   ")
        assert not world.script.requests
        assert not hand.chat.turns.waiting


def ends(hand: Hand) -> list[str]:
    records = hand.chat.transcript.records
    return [record.error.message for record in records if isinstance(record, End) and record.error]


async def test_a_prompt_that_is_refused_comes_back_into_the_input(world: World) -> None:
    errors = [StorageError("The list could not be read."), PromptRefused("A hook did not let the prompt pass.")]
    world.brain.refusals = list[Exception](errors)

    async with running(world) as hand:
        await hand.send("the secret")
        await hand.until(lambda: hand.text == "the secret")
        await hand.press("enter")
        await hand.until(lambda: len(ends(hand)) == 2 and hand.text == "the secret")
        assert not hand.chat.session.started
        assert ends(hand) == [str(error) for error in errors]
    assert not any(journal.events for journal in world.shelf.journals.values())
