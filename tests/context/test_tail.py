"""What a compression keeps of the newest steps: floors, in what order things are cut, and that the room is used."""

from __future__ import annotations

import pytest

from ba_tui.context.compression.extract import extract
from ba_tui.context.compression.rounds import Compression, rounds_of
from ba_tui.context.compression.stubs import MARK
from ba_tui.context.compression.tail import RecentTail, TailShortening
from ba_tui.context.compression.validity import faults
from ba_tui.core.messages import Message, Text, ToolOutput, user
from tests.context.conversations import answer, count, rounds, step
from tests.eval.compression.measure import folded


def rows(name: str, lines: int = 150) -> str:
    return "\n".join(f"{name} row {number}: {number * 37 % 1009} tons at pier {number % 17}" for number in range(lines))


def one_round(steps: int, lines: int = 40) -> list[Message]:
    messages = [user("Compare the piers.")]
    for number in range(steps):
        messages += step(f"c{number}", rows(f"harbour{number}", lines), path=f"data/h{number}.csv")
    return messages


def results_of(made: Compression) -> list[str]:
    return [block.content for message in made.messages for block in message.blocks if isinstance(block, ToolOutput)]


def tail_of(messages: list[Message], target: int) -> RecentTail:
    """``messages`` as the last rounds of a conversation that has no older ones."""
    share = target / count(messages)
    return TailShortening(rounds_of(messages).rounds, target, share, target, count).run()


@pytest.mark.parametrize("share", [0.7, 0.5, 0.25, 0.1])
def test_the_room_is_used(share: float) -> None:
    messages = one_round(30)
    target = int(count(messages) * share)
    made = extract(messages, target, count)
    assert 0.85 * target <= count(made.messages) <= target
    assert not faults(made.messages, messages)


@pytest.mark.parametrize("share", [0.45, 0.6, 0.68])
def test_a_newest_round_that_has_up_to_seven_tenths_of_the_room_stays_word_for_word(share: float) -> None:
    newest = [user("And now this?"), *step("z", rows("last", 30)), answer(Text("It is 401 tons."))]
    messages = [*rounds(12, result=rows("old", 60)), *newest]
    made = extract(messages, int(count(newest) / share), count)
    assert made.messages[-len(newest) :] == tuple(newest)
    assert made.messages[0].origin == "compaction"


def test_a_newest_round_that_is_larger_is_cut_but_not_in_its_last_message() -> None:
    newest = [user("And now this?"), *step("z", rows("last", 200)), answer(Text("It is 401 tons."))]
    messages = [*rounds(8, result=rows("old", 60)), *newest]
    made = extract(messages, int(count(newest) * 0.9), count)
    assert made.messages[-1] == newest[-1]
    assert newest[0].text in folded(made.messages) or newest[0] in made.messages
    assert any(MARK in result for result in results_of(made))


def test_the_oldest_results_are_cut_first_and_no_more_than_must_be() -> None:
    messages = rounds(4, result=rows("old"))
    sizes = count(messages)
    made = tail_of(messages, sizes - 200)
    assert len(made.cut) == 1
    assert made.cut[0].startswith("round 1 ")
    assert count(made.messages) <= sizes - 200
    # 200 tokens had to go: not all of the 1,500 that the result has.
    assert count(made.messages) >= sizes - 900
    assert [message.text for message in made.messages] == [message.text for message in messages]
    more = tail_of(messages, sizes - 1_500)
    assert [title.split(" · ")[0] for title in more.cut] == ["round 1", "round 2"]
    assert more.messages[-8:] == messages[-8:]


def test_texts_of_the_user_are_cut_after_all_results() -> None:
    asked = "\n".join(f"Point {number}: weigh cargo {number * 13} again." for number in range(40))
    messages = [user(asked), *step("a", rows("first")), answer(Text("Done.")), *rounds(3, result=rows("old"))]
    made = tail_of(messages, count(messages) // 2)
    assert made.messages[0] == messages[0]
    assert made.lost == ()
    assert made.cut
    assert all("a text of the person" not in title for title in made.cut)


def test_of_an_enormous_request_both_ends_stay_and_the_rest_is_known_as_lost() -> None:
    asked = "\n".join(f"Point {number}: weigh cargo {number * 13} again." for number in range(900))
    messages = [user(asked), *step("a", "fine"), answer(Text("Which pier?"))]
    target = count(messages) // 2
    made = tail_of(messages, target)
    assert count(made.messages) <= target
    assert made.messages[0].text.startswith("Point 0: weigh cargo 0 again.")
    assert made.messages[0].text.endswith("Point 899: weigh cargo 11687 again.")
    assert made.messages[-1] == messages[-1]
    [(number, lost)] = made.lost
    assert number == 1
    kept = len(made.messages[0].text)
    assert "Point 450:" in lost
    assert len(lost) + kept >= len(asked)
    assert kept >= 0.4 * target


def test_what_can_not_stay_becomes_notes_oldest_first_and_nothing_is_lost_between() -> None:
    messages = one_round(60, lines=12)
    target = count(messages) // 4
    made = tail_of(messages, target)
    kept = made.messages
    assert kept[0] == messages[0]
    moved = [message for item in made.moved for message in item.messages]
    # Each message either stays, whole or cut, or must become a note.
    assert len(moved) + len(kept) == len(messages)
    assert moved == messages[1 : 1 + len(moved)]
    assert [message.text for message in kept[1:]] == [message.text for message in messages[1 + len(moved) :]]
    assert not faults(kept, messages)
    assert kept[-2:] == messages[-2:]
    assert len(kept) >= 7
    assert count(kept) >= 0.15 * target


def test_the_less_must_go_the_more_of_the_last_steps_stays() -> None:
    messages = one_round(60, lines=12)
    kept = [len(tail_of(messages, int(count(messages) * share)).messages) for share in (0.1, 0.25, 0.5, 0.9)]
    assert kept == sorted(kept)
    assert kept[0] >= 3
    assert kept[-1] >= 2 * kept[1]


def test_rounds_that_fit_are_not_touched() -> None:
    messages = rounds(3)
    made = tail_of(messages, count(messages))
    assert made.messages == messages
    assert (made.moved, made.cut, made.whole, made.lost) == ((), (), (), ())


def test_an_enormous_last_message_keeps_most_of_the_room() -> None:
    messages = [*rounds(2, result="short"), user(rows("pasted", 1_500))]
    target = count(messages) // 6
    made = extract(messages, target, count)
    assert 0.85 * target <= count(made.messages) <= target
    assert count(made.messages[-1:]) >= 0.25 * target
    assert "pasted row 0:" in made.messages[-1].text
    assert "pasted row 1499:" in made.messages[-1].text


def test_a_larger_window_keeps_no_fewer_lines_of_a_result() -> None:
    messages = rounds(6, result=rows("old"))
    lines = set(rows("old").splitlines())
    kept = []
    for share in (0.2, 0.4, 0.6, 0.8):
        made = extract(messages, int(count(messages) * share), count)
        kept.append(sum(line in lines for result in results_of(made) for line in result.splitlines()))
    assert kept == sorted(kept)
    assert kept[2] >= 0.3 * 6 * len(lines)
    assert kept[3] >= 0.55 * 6 * len(lines)


def test_steps_without_their_bulk_stay_as_far_back_as_the_room_reaches() -> None:
    messages = one_round(120, lines=160)
    target = count(messages) // 10
    made = tail_of(messages, target)
    whole = count(messages[-len(made.messages) + 1 :])
    assert 0.16 * target <= whole <= 0.32 * target
    assert made.cut
    assert count(made.messages) < 0.8 * whole


def test_the_notes_keep_a_fifth_of_the_room_beside_an_enormous_newest_step() -> None:
    messages = [*rounds(12, result=rows("old", 30)), user("Now this."), *step("z", rows("last", 900))]
    target = count(messages) // 3
    made = extract(messages, target, count)
    assert count(made.messages[:2]) >= 0.2 * target
    assert count(made.messages) <= target
    assert "last row 0:" in folded(made.messages)
    assert "last row 899:" in folded(made.messages)
