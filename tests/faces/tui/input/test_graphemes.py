"""Cursor, selection, Backspace and Delete step over whole characters as people see them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import regex
from textual.app import App, ComposeResult
from textual.events import Key

from ba_tui.faces.tui.widgets.text_fields import (
    ClusterInput,
    cluster_after,
    cluster_before,
    cluster_start,
    known,
    without_last,
)
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World

FAMILY = "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}\u200d\N{BOY}"
CLUSTERS = {
    "family": ["a", FAMILY, "b"],
    "flags": ["\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7", "\U0001f1f0\U0001f1f7", "x"],
    "hindi": ["न", "म", "स्ते", " ", "हि", "न्दी"],
    "conjunct": ["क्षि", "त्रि", "य"],
    "thai": ["ส", "วั", "ส", "ดี", "กำ"],
    "marks": ["e\u0301", "n\u0303", "Z\u0351\u036b\u0343\u036a", "o"],
    "tone": ["\U0001f44d\U0001f3fd", "!", "\u2764\ufe0f", "1\ufe0f\u20e3"],
    "korean": ["\u1100\u1161\u11a8", "한", "글"],
    "tamil": ["நி", "ல", "வு"],
    "plain": list("plain words"),
}


@pytest.mark.parametrize("clusters", CLUSTERS.values(), ids=CLUSTERS)
def test_each_step_is_one_cluster(clusters: list[str]) -> None:
    text = "".join(clusters)
    place = 0
    for cluster in clusters:
        end = place + len(cluster)
        assert cluster_after(text, place) == end
        assert cluster_before(text, end) == place
        for inside in range(place, end):
            assert cluster_start(text, inside) == place
            assert cluster_after(text, inside) == end
        place = end
    assert cluster_after(text, place) == place
    assert cluster_before(text, 0) == 0
    assert without_last(text) == "".join(clusters[:-1])


def test_far_inside_a_long_line_steps_are_the_same() -> None:
    text = ("x" + "स्ते" + FAMILY) * 2_000
    place = 10_000 * 1 + text[10_000:].index("x")
    assert text[place : cluster_after(text, place)] == "x"
    assert text[cluster_before(text, place) : place] == FAMILY


async def places(hand: Hand, key: str) -> list[int]:
    """Columns that the cursor stands at, from where it is until it moves no more."""
    prompt = hand.chat.composer.prompt
    found = [prompt.cursor_location[1]]
    while True:
        await hand.press(key)
        if (at := prompt.cursor_location[1]) == found[-1]:
            return found
        found.append(at)


@pytest.mark.parametrize("name", ["family", "flags", "hindi", "thai", "marks"])
async def test_keys_of_the_input_step_over_whole_clusters(world: World, name: str) -> None:
    clusters = CLUSTERS[name]
    ends = [len("".join(clusters[:count])) for count in range(len(clusters) + 1)]
    async with running(world) as hand:
        prompt = hand.chat.composer.prompt
        for letter in "".join(clusters):
            await prompt.take(Key(letter, letter))
        assert hand.text == "".join(clusters)
        assert await places(hand, "left") == ends[::-1]
        assert await places(hand, "right") == ends
        await hand.press("shift+left")
        assert prompt.selected_text == clusters[-1]
        await hand.press("right")
        for count in range(len(clusters) - 1, -1, -1):
            await hand.press("backspace")
            assert hand.text == "".join(clusters[:count])
        await hand.type("".join(clusters))
        await hand.press("home")
        for count in range(1, len(clusters) + 1):
            await hand.press("delete")
            assert hand.text == "".join(clusters[count:])


async def test_what_is_typed_before_a_flag_stays_where_it_was_typed(world: World) -> None:
    """Between its two letters there is no boundary, and the second one must not jump before the first."""
    async with running(world) as hand:
        await hand.type("\U0001f1e9\U0001f1ea")
        await hand.press("home")
        for letter in "\U0001f1eb\U0001f1f7":
            await hand.chat.composer.prompt.take(Key(letter, letter))
        assert hand.text == "\U0001f1eb\U0001f1f7\U0001f1e9\U0001f1ea"


async def test_joiners_and_wide_spaces_can_be_typed(world: World) -> None:
    """Persian needs the non-joiner, Chinese and Japanese keyboards type the wide space, a Mac the fixed one."""
    text = "می\u200cخواهم\u3000と\xa0\U0001f3f4\U000e0067\U000e007f"
    async with running(world) as hand:
        for letter in text:
            hand.app.post_message(Key(letter, letter))
        await hand.until(lambda: len(hand.text) == len(text))
        assert hand.text == text


async def test_words_keep_their_marks(world: World) -> None:
    async with running(world) as hand:
        prompt = hand.chat.composer.prompt
        await hand.type("नमस्ते हिन्दी शब्द")
        for column in (14, 7, 0):
            await hand.press("alt+b")
            assert prompt.cursor_location[1] == column
        await hand.press("alt+d")
        assert hand.text == " हिन्दी शब्द"
        await hand.press("end", "ctrl+w")
        assert hand.text == " हिन्दी "


async def test_up_and_down_do_not_stop_inside_a_cluster(world: World) -> None:
    async with running(world) as hand:
        prompt = hand.chat.composer.prompt
        await hand.type(f"ab\n{FAMILY}{FAMILY}\nabc")
        prompt.move_cursor((2, 3))
        await hand.press("up")
        assert prompt.cursor_location == (1, len(FAMILY))


async def test_no_line_is_broken_inside_a_cluster(world: World) -> None:
    async with running(world, size=(40, 12)) as hand:
        prompt = hand.chat.composer.prompt
        await hand.type(FAMILY * 40 + "क्ष" * 60)
        await hand.until(lambda: known(hand.text))
        boundaries = {found.start() for found in regex.finditer(r"\X", hand.text)}
        assert prompt.wrapped_document.get_offsets(0)
        assert set(prompt.wrapped_document.get_offsets(0)) <= boundaries


async def test_the_cursor_does_not_take_a_cluster_apart(world: World) -> None:
    async with running(world) as hand:
        prompt = hand.chat.composer.prompt
        await hand.type(f"a{FAMILY}b")
        await hand.press("left", "left")
        await hand.until(lambda: known(hand.text))
        texts = [segment.text for segment in prompt.render_line(0)]
        assert any(text.startswith(FAMILY) or text == FAMILY for text in texts), texts


class Field(App[None]):
    def compose(self) -> ComposeResult:
        yield ClusterInput()


@pytest.mark.parametrize("name", ["family", "hindi", "thai", "plain"])
async def test_a_field_of_one_line_steps_over_whole_clusters(name: str) -> None:
    clusters = CLUSTERS[name]
    app = Field()
    async with app.run_test() as pilot:
        field = app.query_one(ClusterInput)
        field.value = "".join(clusters)
        field.cursor_position = len(field.value)
        for count in range(len(clusters) - 1, -1, -1):
            await pilot.press("left")
            assert field.cursor_position == len("".join(clusters[:count]))
        await pilot.press("shift+right")
        assert field.selected_text == clusters[0]
        await pilot.press("home", "delete", "end", "backspace")
        assert field.value == "".join(clusters[1:-1])


@pytest.mark.outside
def test_every_real_character_is_stepped_over_at_once(outside_data: Path) -> None:
    lines = (outside_data / "width_cases.jsonl").read_text("utf-8").splitlines()
    emoji = [case["s"] for case in map(json.loads, lines) if case["kind"] in {"emoji", "zwj"}]
    assert len(emoji) > 3_000
    assert [text for text in emoji if cluster_after(f"{text}x", 0) != len(text)] == []
    assert [text for text in emoji if cluster_before(f"x{text}", len(text) + 1) != 1] == []
