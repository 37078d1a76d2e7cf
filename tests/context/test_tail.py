"""What a compression keeps of the newest steps: floors, in what order things are cut, and that the room is used."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.context.compression.rounds import Compression, Count, base_id, is_changed, rounds_of
from ba_tui.context.compression.strategies import WHOLE, RecentTail, TailShortening, _Left, extract, faults
from ba_tui.context.compression.stubs import MARK
from ba_tui.core.messages import Message, Text, ToolOutput, user
from tests.context.conversations import answer, conversations, count, rounds, step
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


def shortening(messages: list[Message], target: int, room: int = 0) -> TailShortening:
    """Of ``messages`` as the last rounds of a conversation that has no older ones."""
    share = target / count(messages)
    return TailShortening(rounds_of(messages).rounds, target, share, room or target, count)


def tail_of(messages: list[Message], target: int) -> RecentTail:
    return shortening(messages, target).run()


def least(size: int) -> int:
    """The smallest target of which ``size`` is no more than the part that stays whole."""
    return next(target for target in itertools.count(size) if int(target * WHOLE) >= size)


@pytest.mark.parametrize("share", [0.7, 0.5, 0.25, 0.1])
def test_the_room_is_used(share: float) -> None:
    messages = one_round(30)
    target = int(count(messages) * share)
    made = extract(messages, target, count)
    assert 0.85 * target <= count(made.messages) <= target
    assert not faults(made.messages, messages)


@pytest.mark.parametrize("share", [0.7, 0.8, 0.9])
def test_where_old_results_alone_are_cut_nine_tenths_of_the_room_are_used(share: float) -> None:
    messages = rounds(12, result=rows("old"))
    target = int(count(messages) * share)
    made = extract(messages, target, count)
    assert len(made.messages) == len(messages)
    assert 0.9 * target <= count(made.messages) <= target


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


def dense(messages: Sequence[Message]) -> int:
    """Tokens of two bytes each, as of other scripts."""
    return 2 * count(messages)


@pytest.mark.parametrize(("measure", "spare"), [(count, 200), (dense, 500)])
def test_of_the_last_result_that_is_cut_as_much_stays_as_has_room(measure: Count, spare: int) -> None:
    messages = rounds(4, result=rows("old"))
    size = measure(messages)
    made = TailShortening(rounds_of(messages).rounds, size - 300, 1.0, size - 300, measure).run()
    assert len(made.cut) == 1
    assert 300 <= size - measure(made.messages) <= 300 + spare


def test_where_one_result_is_a_token_too_few_the_next_one_is_cut_too() -> None:
    messages = rounds(4, result=rows("old"))
    size = count(messages)
    first = bisect_left(range(size), 2, lo=200, hi=2_000, key=lambda less: len(tail_of(messages, size - less).cut))
    for less, results in ((first - 1, 1), (first, 2), (first + 1, 2)):
        made = tail_of(messages, size - less)
        assert (len(made.cut), made.moved) == (results, ())
        assert count(made.messages) <= size - less


def test_when_all_results_are_cut_the_rest_fits_to_the_token() -> None:
    messages = rounds(4, result=rows("old"))
    shortened = shortening(messages, count(messages) // 2)

    def fits(room: int) -> bool:
        return shortened._cut(shortened.rounds, room, words=False) is not None

    room = bisect_left(range(count(messages)), True, key=fits)
    made = shortened._cut(shortened.rounds, room, words=False)
    assert made
    assert count(made.messages) <= room
    assert len(made.cut) == len(shortened._bulky(shortened.rounds, words=False))


def test_texts_of_the_user_are_cut_after_all_results() -> None:
    asked = "\n".join(f"Point {number}: weigh cargo {number * 13} again." for number in range(40))
    messages = [user(asked), *step("a", rows("first")), answer(Text("Done.")), *rounds(3, result=rows("old"))]
    made = tail_of(messages, count(messages) // 2)
    assert made.messages[0] == messages[0]
    assert made.lost == ()
    assert made.cut
    assert all("a text of the user" not in title for title in made.cut)


@pytest.mark.parametrize("share", [0.4, 0.5, 0.6])
def test_a_text_of_a_round_that_stays_is_cut_after_its_result(share: float) -> None:
    asked = "\n".join(f"Point {number}: weigh cargo {number * 13} again." for number in range(120))
    messages: list[Message] = []
    for number in range(3):
        messages += [user(asked), *step(f"k{number}", rows(f"p{number}", 80)), answer(Text("Done."))]
    messages += [user("Now?"), *step("z", "fine"), answer(Text("All is done."))]
    made = tail_of(messages, int(count(messages) * share))
    assert [item.number for item in made.moved] == [1, 2]
    assert made.cut == ("round 3 · read_file src/a.py", "round 3 · a text of the user")


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


@pytest.mark.parametrize("share", [0.3, 0.35, 0.4])
def test_steps_whose_results_repeat_a_line_stay_without_their_bulk(share: float) -> None:
    messages = [user("Keep the port at 8080."), answer(Text("Yes.")), *rounds(7, result="row of words\n" * 150)]
    made = extract(messages, int(count(messages) * share), count)
    assert [message.text for message in made.messages[2:]] == [message.text for message in messages[-24:]]


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


ENORMOUS = "\n".join(f"Point {number}: weigh cargo {number * 13} again." for number in range(200))
NEWEST = [user("And now this?"), *step("z", rows("last", 30)), answer(Text("It is 401 tons."))]


def test_a_newest_round_of_just_the_part_that_stays_whole_is_spared_and_a_larger_one_is_not() -> None:
    messages = [*rounds(12, result=rows("old", 60)), *NEWEST]
    target = least(count(NEWEST))
    assert tail_of(messages, target).messages == NEWEST
    assert tail_of(messages, target - 1).messages != NEWEST


def test_a_newest_round_stays_whole_in_a_room_of_just_its_size() -> None:
    messages = [*rounds(12, result=rows("old", 60)), *NEWEST]
    for more in (0, 1):
        made = shortening(messages, 2 * count(NEWEST), count(NEWEST) + more).run()
        assert [made.messages, [item.number for item in made.moved], made.whole] == [
            NEWEST,
            [*range(1, 13)],
            made.rounds,
        ]


def test_a_request_is_cut_only_where_it_alone_takes_too_much() -> None:
    asked = user(ENORMOUS)
    said = answer(Text("It weighs. " * 400), *step("a", "")[0].blocks[1:])
    messages = [asked, *step("a", rows("first", 600)), answer(Text("Done."))]
    target = least(count([asked]))
    assert tail_of(messages, target).messages[0] == asked
    made = tail_of(messages, target - 1)
    assert [title.partition(" · ")[2] for title in made.cut] == ["a text of the user", "read_file src/a.py"]
    assert tail_of([asked, said, *messages[2:]], target + 100).messages[0] == asked
    # All of it fits: then nothing is too much.
    assert tail_of([asked], count([asked])).messages == [asked]


def sized(id: str, size: int) -> list[Message]:
    """A step of so many tokens."""
    made = step(id, rows(f"pier{id}", 200)[: 4 * (size - count(step(id, "")))])
    assert count(made) == size
    return made


def steps_kept(prompt: int, size: int, target: int, share: float) -> int:
    """How many of 60 steps of ``size`` tokens stay behind a prompt of ``prompt`` tokens."""
    messages = [
        user("x" * 4 * (prompt - 5)),
        *(message for number in range(60) for message in sized(f"s{number}", size)),
    ]
    assert count(messages[:1]) == prompt
    return len(TailShortening(rounds_of(messages).rounds, target, share, target, count).run().messages) // 2


@pytest.mark.parametrize(
    ("prompt", "size", "target", "share", "kept"),
    [
        # Where all has room, the last steps get six tenths of it.
        (50, 100, 750, 1.0, 4),
        (51, 100, 750, 1.0, 3),
        (50, 100, 917, 1.0, 5),
        (51, 100, 917, 1.0, 4),
        # Steps lose their bulk as far back as 2,500 tokens reach.
        (100, 400, 2_834, 1.0, 7),
        (101, 400, 2_834, 1.0, 6),
        # The newest step alone has more room than the others get.
        (20, 500, 4_000, 0.0, 1),
    ],
)
def test_as_many_steps_stay_as_have_just_the_room(prompt: int, size: int, target: int, share: float, kept: int) -> None:
    assert steps_kept(prompt, size, target, share) == kept


def test_an_enormous_request_before_a_step_is_read_again_by_the_number_of_its_round() -> None:
    asked = "".join(f"pier {number} has {number * 7} tons\n" for number in range(8_000))
    messages = [*rounds(6, result="fine"), user(asked), *step("z", "fine")]
    made = extract(messages, 600, count)
    (request,) = (message for message in made.messages if message.text.startswith("pier 0"))
    assert "recall(round=7, person=true)" in request.text


@pytest.mark.parametrize(("room", "first"), [(7, 1), (6, None), (4, None), (3, None)])
def test_a_prompt_does_not_stay_without_its_answer(room: int, first: int | None) -> None:
    assert _Left(room, reach=100).first([4, 3], [4, 3], last=False) == first


def test_a_round_that_takes_all_the_room_stays() -> None:
    """The prompt with four tokens, and a step of three and three."""
    for room, first in ((11, 1), (10, 1), (9, None)):
        left = _Left(room, reach=100)
        assert left.first([4, 3, 3], [4, 3, 3], last=False) == first
        assert left.room == (room - 10 if first else room)


def test_what_was_said_between_the_steps_of_the_newest_round_is_cut_after_its_results() -> None:
    asked, seen = step("a", rows("first", 60))
    steered = replace(seen, blocks=(*seen.blocks, Text(ENORMOUS)))
    messages = [*rounds(3), user("Compare."), asked, steered, *step("b", "fine"), answer(Text("Done."))]
    made = tail_of(messages, 1_800)
    assert [title.partition(" · ")[2] for title in made.cut[-2:]] == ["read_file src/a.py", "a text of the user"]
    assert [number for number, _ in made.lost] == [4]
    assert "Point 0:" in made.messages[-4].text
    assert "Point 199:" in made.messages[-4].text


def test_a_tail_becomes_lighter_by_cutting_more_results_and_no_texts() -> None:
    messages = rounds(6, result=rows("old"))
    short = shortening(messages, count(messages) - 200)
    made = short.run()
    lighter = short.lighter(made, count(messages) - 4_000)
    assert count(lighter.messages) <= count(messages) - 4_000
    assert len(made.cut) < len(lighter.cut) < 6
    assert (lighter.moved, lighter.lost, len(lighter.messages)) == ((), (), len(messages))
    assert short.lighter(made, 100) is made
    # No more is cut than must be, and nothing where all has just the room.
    assert short.lighter(made, count(messages)).messages == messages
    asked = [user(ENORMOUS), *step("a", "fine"), answer(Text("Done.")), *messages]
    wordy = shortening(asked, 1_500, count(asked) - 200)
    results_cut = wordy.run()
    assert wordy.lighter(results_cut, 3_500) is results_cut


def test_a_tail_of_which_rounds_became_notes_becomes_lighter_by_less_room_and_wider_by_more() -> None:
    messages = one_round(60, lines=60)
    target = count(messages) // 5
    short = shortening(messages, target)
    made = short.run()
    assert made.cut
    assert made.moved
    room = count(made.messages) - 500
    lighter = short.lighter(made, room)
    assert count(lighter.messages) <= room
    assert lighter.moved
    wider = short.widened(made, count(made.messages) + 300)
    assert (wider.moved, len(wider.messages)) == (made.moved, len(made.messages))
    assert count(made.messages) < count(wider.messages) <= count(made.messages) + 300
    whole = short.run()
    assert short.widened(whole, 10**6).messages == [message for item in whole.whole for message in item.messages]
    uncut = tail_of(NEWEST, 10**6)
    assert short.widened(uncut, 10**6) is uncut


@settings(deadline=None, max_examples=25)
@given(conversations(), st.sampled_from([0.2, 0.5, 0.8, 0.99]))
def test_each_message_stays_or_becomes_a_note_and_none_does_both(messages: list[Message], share: float) -> None:
    target = max(150, int(count(messages) * share))
    made = tail_of(messages, target)
    assert not faults(made.messages, messages)
    assert count(made.messages) <= max(target, count(messages[-1:]) * (len(made.messages) == 1))
    assert any(map(is_changed, made.messages)) == bool(made.cut) or not made.whole
    if not made.moved:
        assert list(map(base_id, made.messages)) == [message.id for message in messages] or not made.whole
    elif made.whole:
        kept = list(map(base_id, made.messages))
        moved = [message.id for item in made.moved for message in item.messages]
        order = {message.id: place for place, message in enumerate(messages)}
        assert sorted([*kept, *moved], key=order.__getitem__) == [message.id for message in messages]
        assert kept == sorted(kept, key=order.__getitem__)
        assert moved == sorted(moved, key=order.__getitem__)
        assert list(itertools.chain(*(map(base_id, item.messages) for item in made.whole))) == kept
    number = {message.id: item.number for item in rounds_of(messages).rounds for message in item.messages}
    for item in (*made.moved, *made.rounds):
        assert item.number in {number[base_id(message)] for message in item.messages}
