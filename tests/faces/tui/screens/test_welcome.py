"""The first start without a model: ways on, keys that stay secret, reading on."""

from __future__ import annotations

from textual.events import Key, Paste
from textual.widgets import Input, OptionList, Static

from ba_tui.core.ports.setup import LocalServer
from ba_tui.core.start import Start
from ba_tui.faces.tui.screens.welcome import Welcome
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World

REASON = "There is no key for anthropic/claude."


async def welcomed(hand: Hand) -> Welcome:
    await hand.until(lambda: isinstance(hand.app.screen, Welcome))
    screen = hand.app.screen
    assert isinstance(screen, Welcome)
    await hand.until(lambda: screen.query(OptionList))
    return screen


async def test_it_opens_at_once_and_the_chat_stays_readable(world: World) -> None:
    world.ways.reason = REASON
    async with running(world) as hand:
        await welcomed(hand)
        await hand.press("escape")
        await hand.until(lambda: hand.app.screen is hand.chat)
        await hand.send("hello")
        await welcomed(hand)
        assert hand.text == "hello", "the prompt is kept for later"
        assert not world.script.requests


async def test_a_pasted_key_is_masked_saved_and_then_the_prompt_goes_out(world: World) -> None:
    world.ways.reason = REASON
    async with running(world, Start(prompt="first")) as hand:
        screen = await welcomed(hand)
        await hand.press("down", "enter")
        field = screen.query_one("#key", Input)
        assert field.password
        field.value = "sk-ant-secret"
        await hand.press("enter")
        await hand.until(lambda: hand.app.screen is hand.chat)
        assert world.ways.keys == [("anthropic", "sk-ant-secret")]
        await hand.until(lambda: hand.chat.turns.missing == "")
        await hand.press("enter")
        await hand.until(lambda: "Done." in hand.said())
        assert not any("sk-ant" in text for text in hand.said())


async def test_words_typed_there_are_a_prompt_and_a_pasted_key_is_none(world: World) -> None:
    world.ways.reason = REASON
    async with running(world) as hand:
        screen = await welcomed(hand)
        screen.query_one(OptionList).post_message(Paste("sk-ant-secret\n"))
        await hand.until(lambda: screen.query_one("#key", Input).value == "sk-ant-secret")
        await hand.press("escape")
        for key in "two ":
            screen.query_one(OptionList).post_message(Key("space" if key == " " else key, key))
        await hand.until(lambda: hand.app.screen is hand.chat)
        await hand.press(*"words")
        assert hand.text == "two words"


async def test_a_key_of_another_vendor_brings_its_model(world: World) -> None:
    world.ways.reason = REASON
    async with running(world) as hand:
        screen = await welcomed(hand)
        await hand.press("down", "down", "enter")
        screen.query_one("#key", Input).value = "sk-secret"
        await hand.press("enter")
        await hand.until(lambda: hand.app.screen is hand.chat and "qwen3-coder" in hand.status)
        assert world.ways.keys == [("openai", "sk-secret")]
        assert "openai/qwen3-coder" in hand.hint


async def test_a_key_that_can_not_be_saved_says_why(world: World) -> None:
    world.ways.reason, world.ways.full = REASON, True
    async with running(world) as hand:
        screen = await welcomed(hand)
        await hand.press("down", "enter")
        screen.query_one("#key", Input).value = "sk-ant-secret"
        await hand.press("enter")
        await hand.until(lambda: "no space left" in str(screen.query_one(".keys", Static).content))


async def test_a_local_server_that_was_found_is_offered_and_used(world: World) -> None:
    world.ways.reason = REASON
    world.ways.servers = (LocalServer("Ollama", "http://127.0.0.1:11434", ("openai/qwen3-coder",)),)
    async with running(world) as hand:
        screen = await welcomed(hand)
        ways = screen.query_one("#ways", OptionList)
        offer = "Use qwen3-coder from Ollama at http://127.0.0.1:11434"
        await hand.until(lambda: any(option.prompt == offer for option in ways.options))
        await hand.press("down", "down", "down", "enter")
        await hand.until(lambda: "qwen3-coder" in hand.status)
        assert world.ways.used == ["openai/qwen3-coder"]


async def test_a_local_server_without_models_is_told(world: World) -> None:
    world.ways.reason = REASON
    world.ways.servers = tuple(LocalServer(name, "http://127.0.0.1:11434", ()) for name in ("Ollama", "LM Studio"))
    async with running(world) as hand:
        ways = (await welcomed(hand)).query_one("#ways", OptionList)
        await hand.until(
            lambda: any("without a model yet: Ollama and LM Studio." in str(each.prompt) for each in ways.options)
        )


async def test_variables_are_shown(world: World) -> None:
    world.ways.reason = REASON
    async with running(world, size=(40, 10)) as hand:
        screen = await welcomed(hand)
        await hand.until(lambda: screen.query_one("#ways", OptionList).option_count == 5)
        await hand.press("down", "down", "down", "enter")
        assert screen.query_one("#variables").region.y < 5, "in sight on a small screen, too"
        assert "Esc goes back" in str(screen.query_one(".keys", Static).content)
        await hand.press("escape")
        assert not screen.query_one("#variables").display


async def test_setup_shows_it_again(world: World) -> None:
    async with running(world) as hand:
        await hand.send("/setup")
        await welcomed(hand)
