"""The exact strings in the notes of a compression: which are listed, and that the next compression reads them again."""

from __future__ import annotations

from string import ascii_letters

from ba_tui.context.compression.ledger import StringUses, picked
from ba_tui.context.compression.strategies import extract
from ba_tui.core.messages import Message, Text, ToolOutput, ToolUse, user
from tests.context.conversations import answer, count, step

FILLER = "".join(f"The tide is calm, and the quay of {letter * 5} is empty.\n" for letter in ascii_letters)


def conversation(*said: Message, after: int = 12) -> list[Message]:
    messages = [user("Repair the crane."), *said]
    for number in range(after):
        messages += step(f"later{number}", FILLER, path="docs/log.md")
    return messages


def edited(path: str) -> list[Message]:
    call = ToolUse("edit", "edit_file", {"path": path, "old": "load = 4", "new": "load = 5"})
    return [answer(Text("I raise the load."), call), Message("user", (ToolOutput("edit", "Done."),), origin="tool")]


def test_each_kind_of_string_is_listed_as_what_it_is() -> None:
    printed = "loading\nCraneError: hook 7 is loose\nload was 1,812.5 tons in boom_arm at src/hoist.py\n"
    messages = conversation(*edited("src/crane.py"), *step("run", printed, path="src/rope.py"))
    kinds = {named.text: named.kind for named in StringUses(messages).ranked([])}
    assert kinds["src/crane.py"] == "changed"
    assert kinds["src/rope.py"] == kinds["src/hoist.py"] == "path"
    assert kinds["boom_arm"] == "name"
    assert kinds["1,812.5"] == "figure"
    assert kinds["CraneError: hook 7 is loose"] == "error"
    held = extract(messages, count(messages) // 4, count).messages[0].text
    assert all(string in held for string in ("src/crane.py", "boom_arm", "1,812.5", "CraneError: hook 7 is loose"))


def test_what_the_agent_wrote_again_comes_before_what_a_table_printed() -> None:
    table = "\n".join(f"pier_{number} {number * 37 + 5000}" for number in range(300))
    messages = conversation(*step("table", table), answer(Text("pier_41 has 6517 tons.")), user("And?"), after=8)
    ranked = [named.text for named in StringUses(messages).ranked(messages[-4:])]
    assert max(ranked.index("pier_41"), ranked.index("6517")) < min(ranked.index("pier_40"), ranked.index("6480"))


def test_a_string_that_the_model_still_sees_is_not_listed() -> None:
    messages = conversation(*step("a", "see src/hoist.py and src/rope.py"), after=3)
    ranked = {named.text for named in StringUses(messages).ranked(messages[1:3])}
    assert not ranked & {"src/hoist.py", "src/rope.py"}
    assert "docs/log.md" in ranked


def test_strings_outlive_a_second_compression() -> None:
    messages = conversation(*edited("src/crane.py"), answer(Text("boom_arm holds 1812.5 tons.")), user("Go on."))
    first = extract(messages, count(messages) // 4, count).messages
    more = [*first, *conversation()[1:]]
    second = extract(more, count(messages) // 4, count).messages
    held = second[0].text
    assert all(string in held for string in ("src/crane.py", "boom_arm", "1812.5"))


def test_a_small_room_has_the_likeliest_of_each_kind() -> None:
    printed = "\n".join(f"src/part{number}.py: hook_{number} {number * 111 + 100}" for number in range(40))
    strings = StringUses(conversation(*step("a", printed))).ranked([])
    chosen = picked(strings, 900, "")
    assert sum(len(named.text) + 2 for named in chosen) <= 900
    assert {named.kind for named in chosen} >= {"path", "name", "figure"}
    assert picked(strings, 4, "") == []
    assert not {named.text for named in picked(strings, 900, "src/part3.py")} & {"src/part3.py"}


def test_of_an_enormous_text_both_ends_are_searched() -> None:
    text = f"src/first.py\n{FILLER * 40}src/middle.py\n{FILLER * 40}src/last.py"
    ranked = {named.text for named in StringUses([user(text)]).ranked([])}
    assert {"src/first.py", "src/last.py"} <= ranked
    assert "src/middle.py" not in ranked
