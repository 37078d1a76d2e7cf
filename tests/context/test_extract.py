"""Compression by rules, through its functions: what stays, what is cut, and what can be read again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ba_tui.context.compression.notes import read
from ba_tui.context.compression.rounds import Keep, opening, turn_start
from ba_tui.context.compression.strategies import extract, faults, truncate
from ba_tui.context.compression.stubs import fit
from ba_tui.core.events import MessageDone, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.messages import Image, Message, Text, Thinking, ToolOutput, ToolUse, reminder, user
from ba_tui.core.results import ToolResult
from ba_tui.core.transcript import Transcript
from ba_tui.tools.builtin.recall import rounds as recalled
from tests.context.conversations import answer, conversations, count, rounds, step


def text_of(messages: Any) -> str:
    blocks = [block for message in messages for block in message.blocks]
    return "\n".join(getattr(block, "text", "") or getattr(block, "content", "") for block in blocks)


def test_small_conversation_stays_as_it_is() -> None:
    messages = rounds(2)
    assert extract(messages, 100_000, count).messages == tuple(messages)
    assert truncate(messages, 100_000, count).messages == tuple(messages)
    assert fit(messages, 100_000, count) == tuple(messages)


def test_old_bulky_results_are_cut_first_and_all_else_stays() -> None:
    messages = rounds(12)
    made = extract(messages, int(count(messages) * 0.7), count)
    assert len(made.messages) == len(messages)
    assert made.stubs == tuple(f"round {number} · read_file src/p{number}.py" for number in range(1, 7))
    assert "recall(round=1)" in text_of(made.messages[:3])
    assert made.messages[-24:] == tuple(messages[-24:])
    assert [message.text for message in made.messages] == [message.text for message in messages]


def test_old_rounds_become_notes_and_the_last_ones_stay_word_for_word() -> None:
    messages = rounds(40, result="short")
    made = extract(messages, 400, count)
    assert made.messages[2:] == tuple(messages[-24:])
    assert made.messages[0].origin == "compaction"
    assert made.messages[0].hidden
    assert "Request 1: look at part 1." in made.messages[0].text
    assert made.turn_start == len(made.messages) - 3
    assert count(made.messages) <= 400


def test_what_was_kept_is_said() -> None:
    short, long = rounds(40, result="short"), [user("Look."), *rounds(1, result="row\n" * 9)[1:3] * 40]
    for keep, number in ((5, 6), (1, 2)):
        assert extract(short, 400, count, Keep(keep)).kept == f"the last {number} rounds, notes on what was before"
    assert extract(long, count(long) // 4, count).kept == "the current round, notes on what was before"
    bulky = rounds(12)
    cut = "the last 12 rounds, 6 long results cut to their main lines"
    assert extract(bulky, int(count(bulky) * 0.7), count).kept == cut
    whole = "everything: it was small enough"
    for make in (extract, truncate):
        assert make(bulky, count(bulky), count).kept == whole
        assert make(bulky, count(bulky) - 1, count).kept != whole


def test_the_smallest_room_has_notes_that_something_is_missing() -> None:
    messages = rounds(6, result="row 0")
    made = extract(messages, 88, count)
    assert made.messages[0].origin == "compaction"
    assert count(made.messages) <= 88


def test_the_number_of_rounds_that_stay_can_be_chosen() -> None:
    messages = rounds(40, result="short")
    made = extract(messages, 400, count, Keep(rounds=2))
    assert made.messages[2:] == tuple(messages[-12:])


def test_last_rounds_that_overflow_lose_their_bulk_before_their_words() -> None:
    messages = rounds(3, result="row 1 of the table\n" * 600)
    made = extract(messages, count(messages) // 3, count)
    assert [message.text for message in made.messages] == [message.text for message in messages]
    assert made.stubs
    assert not faults(made.messages, messages)


def test_one_long_round_keeps_its_task_and_its_last_steps() -> None:
    messages = [user("Port everything. Never use the network.")]
    for number in range(60):
        messages += step(f"c{number}", f"part {number}\n" * 30, path=f"src/p{number}.py")
    made = extract(messages, count(messages) // 5, count)
    assert messages[0] in made.messages
    assert made.messages[-2:] == tuple(messages[-2:])
    assert made.messages[made.turn_start - 1] is messages[0]
    assert not faults(made.messages, messages)
    assert "## Round 1" in made.messages[0].text


def test_of_a_program_the_lines_that_fail_or_catch_stay() -> None:
    source = [f"{number}:        self.part_{number} = {number * 7}" for number in range(1, 200)]
    source[120] = "121:            raise LedgerClosedError(name)"
    source[150] = "151:        except (TypeError, KeyError) as error:"
    messages = [user("Find it."), *step("a", "\n".join(source)), *step("b", "\n".join(source[:60]), path="src/b.py")]
    messages += step("c", "fine", path="src/c.py")
    kept = text_of(extract(messages, count(messages) // 3, count).messages)
    assert source[120] in kept
    assert source[150] in kept


def test_each_place_where_a_program_raises_an_error_stays() -> None:
    source = [f"{number}:    tide = depth(pier, {number * 3})" for number in range(1, 300)]
    places = {40, 90, 91, 160, 230, 280}
    for number in places:
        source[number] = f"{number + 1}:        raise TideError("
    # What was changed is looked at again.
    messages = [user("Mend it."), *step("a", "\n".join(source)), *step("b", "\n".join(source[20:]))]
    messages += step("c", "fine", path="src/c.py")
    kept = text_of(extract(messages, count(messages) // 10, count).messages)
    assert not [source[number] for number in places if source[number] not in kept]


@pytest.mark.parametrize("form", ["call", "fence", "tag"])
def test_the_last_actions_are_told_in_full(form: str) -> None:
    done = [
        f"edit {number}:{number}\n    depth = round(tide({number}), 2)  # {'to the centimetre ' * 6}"
        for number in range(20)
    ]

    def act(number: int, code: str) -> list[Message]:
        if form == "call":
            call = ToolUse(f"c{number}", "shell", {"command": code})
            output = ToolOutput(call.id, "done\n" * 40)
            return [answer(Text("I see. " * 9), call), Message("user", (output,), origin="tool")]
        shown = f"```\n{code}\n```" if form == "fence" else f"<command>\n{code}\n</command>"
        return [answer(Text(f"{'I see. ' * 9}\n{shown}")), user("done\n" * 40)]

    messages = [
        user("Mend the tides."),
        *(message for number, code in enumerate(done) for message in act(number, code)),
    ]
    made = extract(messages, count(messages) // 3, count).messages
    calls = [str(call.input["command"]) for message in made for call in message.calls]
    kept = " ".join("\n".join([text_of(made), *calls]).split())
    assert not [code for code in done[-5:] if " ".join(code.split()) not in kept]


def test_a_small_window_has_room_for_what_was_asked() -> None:
    asked = "The ferry sinks when the tide is out: mend `depth` in src/tides.py, and tell me why.\n"
    messages = [user(asked + "Look around first.\n" * 150)]
    for number in range(8):
        messages += step(f"c{number}", f"part {number}\n" * 12, path=f"src/p{number}.py")
    made = extract(messages, 350, count)
    assert asked in text_of(made.messages)
    assert count(made.messages) <= 350


def test_a_step_of_a_plan_becomes_no_instruction() -> None:
    steps = ["Always wake the lion first.", "Never use the north pier.", "Make sure that the ledger is closed."]
    plan = "\n".join(f"{number}. {words}" for number, words in enumerate(steps, 1))
    todo = {"items": [{"content": words, "status": "completed"} for words in steps]}
    messages = [
        user("Feed the lions. Always answer in French."),
        answer(Text(f"The plan, because you must not wait:\n{plan}"), ToolUse("t", "todo_write", todo)),
        Message("user", (ToolOutput("t", plan),), origin="tool"),
        answer(Text(f"From now on I follow it:\n{plan}")),
        *rounds(40),
    ]
    once = extract(messages, count(messages) // 8, count).messages
    twice = extract([*once, *rounds(20)], count(messages) // 8, count).messages
    for made in (once, twice):
        notes = read(made[:1])
        theirs = [text.head + text.tail for text in notes.texts] + [
            fact.text for fact in notes.facts if fact.kind in ("person", "todo")
        ]
        assert any("Always answer in French." in text for text in theirs)
        assert not [words for words in steps for text in theirs if words in text]
        assert "nstructions" not in made[0].text


def test_a_paste_in_an_earlier_round_loses_its_bulk_and_the_answer_to_it_stays() -> None:
    log = [f"INFO worker {number % 7} took {number * 3} ms" for number in range(300)]
    log[140] = "ERROR worker 3 lost its lease on tank-9"
    said = "Here is the log. Never restart tank-9.\n" + "\n".join(log)
    messages = [*rounds(6), user(said), answer(Text("It lost its lease.")), user("And now?"), answer(Text("Wait."))]
    made = extract(messages, count(messages) // 5, count)
    assert made.messages[-3:] == tuple(messages[-3:])
    for words in ("Never restart tank-9.", "recall(round=7, person=true)"):
        assert words in made.messages[-4].text, words
    assert log[140] in made.messages[0].text


def test_what_the_first_request_opens_with_is_kept_before_its_list() -> None:
    asked = "We port the harbour office.\nThe tides must not change.\n" + "\n".join(
        f"{number}. Look at pier {number}, e.g. its ladder." for number in range(1, 40)
    )
    notes = extract([user(asked), *rounds(30)], 700, count).messages[0].text
    assert "We port the harbour office.\nThe tides must not change.\n" in notes
    assert "\n1.\n" not in notes


def test_what_must_survive_does() -> None:
    todo = {"items": [{"content": "wake the lion", "status": "pending"}, {"content": "old", "status": "completed"}]}
    messages = [
        user("Migrate the ledger to the new schema. Always answer in French."),
        answer(Text("We keep UUIDs because the partners store them."), ToolUse("t", "todo_write", todo)),
        Message("user", (ToolOutput("t", "The list now has 2 items."),), origin="tool"),
        *step("e", "Wrote 3 lines.", path="db/ledger.sql", tool="edit_file"),
        *step("f", "Operation failed.\nError Message: column owner_id is missing", path="db/run.sql", bad=True),
        answer(Text("It moves 48,210 rows. Ask Ruth Okafor before 4 May 2027.")),
        *rounds(30),
    ]
    made = extract(messages, count(messages) // 10, count)
    notes = made.messages[0].text
    expected = (
        "Migrate the ledger",
        "Always answer in French",
        "wake the lion",
        "because the partners",
        "db/ledger.sql",
    )
    for words in (*expected, "column owner_id is missing", "48,210 rows", "Ruth Okafor", "4 May 2027"):
        assert words in notes, words
    assert "[ ] old" not in notes


def test_chinese_is_read_as_well() -> None:
    messages = [
        user("把库存对一遍。以后请用中文回答，不要改原始文件。"),
        answer(Text("决定按箱计数，因为散件没有条码。负责人是王晓琳，差异 128 箱。")),
        *rounds(30),
    ]
    notes = extract(messages, count(messages) // 10, count).messages[0].text
    for words in ("以后请用中文回答", "不要改原始文件", "决定按箱计数", "王晓琳", "128 箱"):
        assert words in notes, words


def test_an_error_that_was_overcome_is_no_longer_open() -> None:
    messages = [
        user("Run it."),
        *step("a", "ValueError: first trouble", path="run.py", bad=True),
        *step("b", "fine", path="run.py"),
        *step("c", "ValueError: second trouble", path="other.py", bad=True),
        answer(Text("One is left.")),
        *rounds(20),
    ]
    notes = extract(messages, count(messages) // 4, count, Keep(rounds=3)).messages[0].text
    section = notes.partition("## Errors not resolved")[2].partition("##")[0]
    assert "second trouble" in section
    assert "first trouble" not in section


def test_reminders_are_no_part_of_the_notes() -> None:
    full = reminder("The context window is 76% full. Soon its older part is replaced by notes. 12 rows are left.")
    prompt = user("Count the geese.").joined(reminder("It is Monday, 2026-11-23. Always answer in Latin."))
    output = Message("user", (ToolOutput("t", "ok"), *full.blocks), origin="tool")
    messages = [
        prompt,
        answer(ToolUse("t", "shell", {"command": "ls"})),
        output,
        answer(Text("77 geese.")),
        *rounds(30),
    ]
    made: Sequence[Message] = messages
    for way in (extract, truncate, extract):
        made = way([*made, *rounds(6)], 1_500, count).messages
        text = text_of(made)
        assert "Count the geese." in text
        for words in ("context window", "12 rows", "Monday", "Latin", "system-reminder"):
            assert words not in text, words


def test_focus_is_kept_before_other_things() -> None:
    remarks = [f"Remark {number} about the {name}." for number, name in enumerate(["weather"] * 300)]
    remarks[150] = "The walrus enclosure is fine."
    messages = [user("Go."), answer(Text("\n".join(remarks))), *rounds(8, result="ok")]
    target = count(messages[2:]) + 150
    assert "walrus" in extract(messages, target, count, focus="walrus").messages[0].text


def test_a_second_compression_keeps_the_notes_of_the_first() -> None:
    messages = [user("Count the geese. Never wake them."), answer(Text("There are 77 geese.")), *rounds(20)]
    once = extract(messages, count(messages) // 4, count).messages
    twice = extract([*once, *rounds(20)], count(messages) // 4, count).messages
    for words in ("Count the geese.", "Never wake them.", "There are 77 geese."):
        assert words in twice[0].text, words
    assert twice[0].text.count("Count the geese.") == 1


def test_a_summary_by_a_model_outlives_a_compression_by_rules() -> None:
    summary = "# Hand-over\nGoal: sell 12 boats.\nNext step: call Ines."
    messages = [*opening((Text(summary),)), *rounds(30)]
    for made in (extract(messages, 1_500, count), truncate(messages, 1_500, count)):
        assert "Goal: sell 12 boats." in made.messages[0].text
        assert "Next step: call Ines." in made.messages[0].text


def test_numbers_of_rounds_are_those_of_recall() -> None:
    events: list[Any] = []
    for number in range(1, 10):
        events.append(TurnStarted(user(f"Request {number}")))
        if number in (2, 5):
            events.append(TurnEnded("error"))  # No answer: the next prompt joins this one.
            continue
        call = ToolUse(f"c{number}", "read_file", {"path": f"src/p{number}.py"})
        events += [MessageDone(answer(call)), ToolStarted(call), ToolFinished(call.id, ToolResult("line\n" * 900), 0.1)]
        events += [MessageDone(answer(Text("Done."))), TurnEnded("done")]
    transcript = Transcript(events=events)
    whole = recalled(events)
    made = extract(transcript.messages, count(transcript.messages) * 3 // 4, count, Keep(2, transcript.rounds))
    assert made.stubs
    for title in made.stubs:
        number, path = int(title.split()[1]), title.split()[-1]
        assert any(path in part.text for part in whole[number - 1].parts)


def test_pictures_and_thinking_of_old_rounds_go_as_a_whole() -> None:
    picture = Message("user", (Text("What is this?"), Image("image/png", "AAAA")))
    old = [picture, answer(Thinking("A cat?", "signed"), Text("A cat."))]
    messages = [*old, *rounds(10)]
    made = extract(messages, count(messages) // 2, count)
    assert not faults(made.messages, messages)
    assert not any(isinstance(block, Image) for message in made.messages for block in message.blocks)


def test_one_enormous_message_fits() -> None:
    for words in ("word " * 300_000, "漢字" * 200_000):
        for made in (extract([user(words)], 500, count), truncate([user(words)], 500, count)):
            assert count(made.messages) <= 500
            assert made.messages[0].text.startswith(words[:20])
            assert not faults(made.messages)


def test_an_enormous_message_keeps_as_much_as_there_is_room_for() -> None:
    paste = "".join(f"row {number}\n" for number in range(100_000))
    messages = [user("Always keep the port at 8080."), answer(Text("Yes.")), user(paste)]
    target = count(messages) // 4
    first = extract(messages, target, count)
    again = extract([*first.messages, answer(Text("Seen.")), user(paste)], target, count)
    for made in (first, again, truncate(messages, target, count)):
        assert target // 4 < count(made.messages) <= target
        assert "row 0\n" in text_of(made.messages)
        assert "row 99999\n" in text_of(made.messages)
        assert "port at 8080" in text_of(made.messages)


def test_five_thousand_tiny_messages_fit() -> None:
    messages = [user("Hm?") if place % 2 == 0 else answer(Text("Hm.")) for place in range(5_001)]
    for made in (extract(messages, 300, count).messages, truncate(messages, 300, count).messages):
        assert count(made) <= 300
        assert not faults(made, messages)
        assert made[-1] is messages[-1]


def test_faults_are_named() -> None:
    call = ToolUse("c", "shell", {})
    assert faults([]) == ["there is no message"]
    assert "message 0 is not from the user" in faults([answer(Text("a"))])
    assert "messages 0 and 1 are both from the user" in faults([user("a"), user("b")])
    assert "message 1, block 0: the text is empty" in faults([user("a"), answer(Text(" "))])
    assert "message 1 has calls without results" in faults([user("a"), answer(call)])
    lonely = Message("user", (ToolOutput("x", "y"),))
    assert "message 2 does not answer exactly the calls before it" in faults([user("a"), answer(call), lonely])
    thought = [user("a"), answer(Thinking("b", "signed"), Text("c"))]
    edited = [user("a"), answer(Thinking("B", "signed"), Text("c"))]
    assert faults(thought, thought) == []
    assert faults(edited, thought) == ["thinking was changed"]


@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.generate], derandomize=True)
@given(conversations(), st.floats(0.02, 1.1), st.integers(0, 5))
def test_any_conversation_fits_any_budget(messages: list[Message], share: float, keep: int) -> None:
    target = max(60, int(count(messages) * share))
    assert faults(messages) == []
    results = [make(messages, target, count, Keep(keep)) for make in (extract, truncate)]
    for made in (*(result.messages for result in results), fit(messages, target, count)):
        assert count(made) <= target
        assert faults(made, messages) == []
    last = max(place for place, message in enumerate(messages) if message.origin == "user")
    for result in results:
        assert result.turn_start == turn_start(result.messages)
        if count(messages[last:]) <= target // 2:
            assert result.messages[-len(messages[last:]) :] == tuple(messages[last:])
