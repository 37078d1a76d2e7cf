"""The first start without a model: ways on, keys that stay secret, reading on."""

from __future__ import annotations

from textual.events import Key, Paste
from textual.widgets import Input, OptionList, Static

from ba_tui.core.errors import AuthFailed, ConnectionLost, UsageError
from ba_tui.core.ports.settings import FoundServer
from ba_tui.core.provider import ModelInfo
from ba_tui.core.start import Start
from ba_tui.faces.tui.screens.list_screen import ListScreen
from ba_tui.faces.tui.screens.models import ModelPicker, ServedModels, Welcome
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


def server(*models: str, provider: str = "ollama", title: str = "Ollama", trouble: str = "") -> FoundServer:
    infos = tuple(ModelInfo(f"openai/{name}", "openai", name) for name in models)
    return FoundServer(provider, title, "http://127.0.0.1:11434/v1", infos, (trouble,) if trouble else ())


def rows(screen: Welcome) -> list[str]:
    return [str(option.prompt) for option in screen.query_one("#ways", OptionList).options]


def said(screen: Welcome) -> str:
    return str(screen.query_one(".keys", Static).content)


async def test_a_local_server_that_was_found_is_offered_and_used(world: World) -> None:
    world.ways.reason = REASON
    world.ways.found = (server("qwen3-coder"),)
    async with running(world) as hand:
        screen = await welcomed(hand)
        await hand.until(lambda: "Use qwen3-coder from Ollama at http://127.0.0.1:11434/v1" in rows(screen))
        await hand.press("down", "down", "down", "enter")
        await hand.until(lambda: "qwen3-coder" in hand.status)
        assert world.ways.used == ["openai/qwen3-coder"]


async def test_many_models_of_a_server_are_a_list_to_choose_from(world: World) -> None:
    world.ways.reason = REASON
    world.ways.found = (server(*(f"m{number}" for number in range(2_000)), "qwen3-coder"),)
    async with running(world) as hand:
        screen = await welcomed(hand)
        await hand.until(lambda: "Choose from 2,001 models of Ollama at http://127.0.0.1:11434/v1" in rows(screen))
        await hand.press("down", "down", "down", "enter")
        await hand.until(lambda: isinstance(hand.app.screen, ServedModels))
        await hand.until(lambda: "50 of 2,001 shown" in str(hand.app.screen.query_one(".keys", Static).content))
        await hand.press(*"qwen")
        await hand.until(lambda: isinstance(picker := hand.app.screen, ListScreen) and len(picker.matching()) == 1)
        await hand.press("enter")
        await hand.until(lambda: world.ways.used == ["openai/qwen3-coder"])


async def test_a_server_without_models_or_with_trouble_is_told(world: World) -> None:
    world.ways.reason = REASON
    world.ways.found = (server(), server(title="gpubox", provider="gpubox", trouble="gpubox wants an API key."))
    async with running(world) as hand:
        screen = await welcomed(hand)
        await hand.until(lambda: "Ollama at http://127.0.0.1:11434/v1 has no models yet." in rows(screen))
        assert "gpubox wants an API key." in rows(screen)


async def test_the_address_of_a_server_can_be_typed(world: World) -> None:
    world.ways.reason = REASON
    world.ways.at = {"box:1": UsageError("The name box is taken.", "Type another."), "box:2": server("qwen3-coder")}
    async with running(world) as hand:
        screen = await welcomed(hand)
        await hand.until(lambda: any("usual ports" in row for row in rows(screen)))
        await hand.press("down", "down", "down", "enter", *"box:1", "enter")
        await hand.until(lambda: said(screen) == "The name box is taken. Type another.")
        assert screen.query_one("#address", Input).value == "box:1", "it can be corrected"
        await hand.press("backspace", "2", "enter")
        await hand.until(lambda: world.ways.used == ["openai/qwen3-coder"])


async def test_the_path_of_a_model_file_can_be_typed(world: World) -> None:
    world.ways.reason = REASON
    async with running(world) as hand:
        screen = await welcomed(hand)
        await hand.until(lambda: any("usual ports" in row for row in rows(screen)))
        await hand.press("down", "down", "down", "down", "enter", *"m.ggu", "enter")
        await hand.until(lambda: said(screen) == "m.ggu is not a model in the GGUF format. Name another file.")
        await hand.press("f", "enter")
        await hand.until(lambda: world.ways.used == ["local:m.gguf"])


async def test_a_server_that_wants_a_key_gets_one(world: World) -> None:
    world.ways.reason = REASON
    world.ways.at = {
        "box": AuthFailed("box wants an API key."),
        "box sk-1": AuthFailed("box refuses this key."),
        "box sk-2": server("qwen3-coder", provider="box"),
    }
    async with running(world) as hand:
        screen = await welcomed(hand)
        await hand.until(lambda: any("usual ports" in row for row in rows(screen)))
        await hand.press("down", "down", "down", "enter", *"box", "enter")
        await hand.until(lambda: said(screen).startswith("box wants an API key. Paste the key"))
        await hand.press(*"sk-1", "enter")
        await hand.until(lambda: said(screen).startswith("box refuses this key. Paste the key"))
        await hand.press(*"sk-2", "enter")
        await hand.until(lambda: world.ways.keys == [("box", "sk-2")])


async def test_a_key_that_is_refused_is_not_saved_and_the_field_stays(world: World) -> None:
    world.ways.reason = REASON
    world.ways.refusals = [AuthFailed("api.anthropic.com refuses this key.", "Paste another one.")]
    async with running(world) as hand:
        screen = await welcomed(hand)
        await hand.press("down", "enter", *"sk-ant-bad", "enter")
        await hand.until(lambda: said(screen) == "api.anthropic.com refuses this key. Paste another one.")
        assert screen.query_one("#key", Input).display
        assert world.ways.keys == []
        await hand.press(*"sk-ant-good", "enter")
        await hand.until(lambda: world.ways.keys == [("anthropic", "sk-ant-good")])
        assert world.ways.checked == [("anthropic", "sk-ant-bad"), ("anthropic", "sk-ant-good")]


async def test_a_key_that_nobody_can_check_is_saved_if_the_person_wants(world: World) -> None:
    world.ways.reason = REASON
    world.ways.refusals = [ConnectionLost("Nothing answers at api.anthropic.com."), ConnectionLost("Not now.")]
    async with running(world) as hand:
        screen = await welcomed(hand)
        await hand.press("down", "enter", *"sk-ant-one", "enter")
        await hand.until(lambda: said(screen).startswith("Not checked: Nothing answers at api.anthropic.com."))
        await hand.press("escape", "enter", "enter")
        await hand.until(lambda: said(screen) == "Paste the key first.")
        await hand.press(*"sk-ant-two", "enter")
        await hand.until(lambda: said(screen).startswith("Not checked: Not now. Enter save it anyway"))
        assert world.ways.keys == []
        await hand.press("enter")
        await hand.until(lambda: world.ways.keys == [("anthropic", "sk-ant-two")])


async def test_a_key_with_a_line_break_is_refused_whole(world: World) -> None:
    world.ways.reason = REASON
    async with running(world) as hand:
        screen = await welcomed(hand)
        await hand.press("down", "enter")
        field = screen.query_one("#key", Input)
        field.post_message(Paste("sk-ant-one\nsk-ant-two"))
        await hand.until(lambda: "line break" in said(screen))
        assert field.value == ""
        field.post_message(Paste("\n sk-ant-good \r\n"))
        await hand.until(lambda: field.value == "sk-ant-good")


async def test_a_new_key_is_used_by_the_next_prompt(world: World) -> None:
    async with running(world) as hand:
        await hand.send("hello")
        await hand.until(lambda: "Done." in hand.said())
        asked = len(world.brain.warmed)
        await hand.send("/setup")
        screen = await welcomed(hand)
        await hand.press("down", "enter", *"sk-ant-new", "enter")
        await hand.until(lambda: world.ways.keys == [("anthropic", "sk-ant-new")])
        await hand.until(lambda: hand.app.screen is hand.chat)
        await hand.send("again")
        await hand.until(lambda: len(world.brain.warmed) > asked)
        assert not screen.is_attached


async def test_a_server_that_was_started_meanwhile_is_noticed(world: World) -> None:
    world.ways.reason = "Ollama is not running: nothing answers at 127.0.0.1:11434. Start it: ollama serve"
    async with running(world) as hand:
        screen = await welcomed(hand)
        assert "ollama serve" in str(screen.query_one(".lead", Static).content)
        await hand.press("escape")
        await hand.until(lambda: hand.app.screen is hand.chat)
        world.ways.reason = ""
        await hand.send("hello")
        await hand.until(lambda: "is ready: press Enter" in hand.hint)
        await hand.press("enter")
        await hand.until(lambda: "Done." in hand.said())


async def test_the_model_picker_lists_what_servers_serve(world: World) -> None:
    world.ways.found = (server("qwen3-coder", "llama3"), server(title="gpubox", trouble="gpubox: no list."))
    async with running(world) as hand:
        await hand.send("/model")
        await hand.until(lambda: isinstance(hand.app.screen, ModelPicker))
        picker = hand.app.screen
        assert isinstance(picker, ModelPicker)
        await hand.until(lambda: "openai/llama3" in [row.id for row in picker.rows])
        listed = [row.id for row in picker.rows]
        assert listed.count("openai/qwen3-coder") == 1
        assert listed[:2] == ["demo/tour", "openai/llama3"], "the one in use, then what runs here"
        assert str(picker.query_one(".keys", Static).content) == "gpubox: no list."


async def test_variables_are_shown(world: World) -> None:
    world.ways.reason = REASON
    async with running(world, size=(40, 10)) as hand:
        screen = await welcomed(hand)
        await hand.until(lambda: screen.query_one("#ways", OptionList).option_count == 7)
        await hand.press("down", "down", "down", "down", "down", "enter")
        assert screen.query_one("#variables").region.y < 5, "in sight on a small screen, too"
        assert "Esc back" in str(screen.query_one(".keys", Static).content)
        await hand.press("escape")
        assert not screen.query_one("#variables").display


async def test_setup_shows_it_again(world: World) -> None:
    async with running(world) as hand:
        await hand.send("/setup")
        await welcomed(hand)
