"""Places stay where they are while heights are guessed, measured and changed; length costs nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ba_tui.faces.tui.transcript.layout import FIRST, Heights, LayoutPosition, TranscriptLayout, layouts_of
from ba_tui.faces.tui.transcript.palette import Palette
from ba_tui.faces.tui.transcript.pane import TranscriptSearch, key, place_of, selected
from ba_tui.faces.tui.transcript.records import Prompt, ProseRecord, Record
from ba_tui.faces.tui.transcript.rows import Look


def stack_of(records: list[Record], width: int = 40) -> TranscriptLayout:
    transcript = TranscriptLayout()
    transcript.restyle(Look(width, Palette(), 0.0))
    transcript.replace_from(0, records)
    return transcript


def talk(count: int) -> list[Record]:
    words = "Some words that wrap at forty cells, and a few more.\n\n- a list\n- of two\n"
    return [ProseRecord(f"number {at}\n\n{words}") if at % 2 else Prompt(f"question {at}") for at in range(count)]


@given(
    st.lists(st.integers(0, 9), max_size=60), st.lists(st.tuples(st.integers(0, 59), st.integers(0, 9)), max_size=20)
)
def test_heights_equal_plain_sums(values: list[int], changes: list[tuple[int, int]]) -> None:
    heights = Heights(values[: len(values) // 2])
    for value in values[len(values) // 2 :]:
        heights.append(value)
    for place, value in changes:
        if place < len(values):
            heights.set(place, value)
            values[place] = value
    assert heights.total == sum(values)
    lines = [(at, line) for at, value in enumerate(values) for line in range(value)]
    for y, place in enumerate(lines):
        assert heights.find(y) == place
        assert heights.before(place[0]) + place[1] == y


def test_walking_up_or_down_shows_the_same_rows() -> None:
    down, up = stack_of(talk(40)), stack_of(talk(40))
    rows = down.window(FIRST, 10_000)
    assert len(rows) == down.height
    place, found = up.last(), [up.last()]
    while (above := up.moved(place, -1)) != place:
        place = above
        found.append(place)
    assert [shown.place for shown in rows] == found[::-1]
    assert [down.y(shown.place) for shown in rows] == list(range(down.height))


def test_a_place_keeps_its_row_when_what_is_above_gets_measured() -> None:
    transcript = stack_of(talk(100))
    place = transcript.moved(transcript.last(), -20)
    before = transcript.window(place, 5)
    transcript.window(FIRST, 10_000)
    assert transcript.window(place, 5) == before


def test_older_records_come_in_above() -> None:
    transcript = stack_of(talk(10))
    number = key(transcript, LayoutPosition(3, 0, 1))
    text = transcript.window(LayoutPosition(3, 0, 1), 4)
    moved = transcript.prepend(layouts_of(talk(7), 40))
    assert moved == 7
    assert [line for _, line in transcript.window(LayoutPosition(10, 0, 1), 4)] == [line for _, line in text]
    assert place_of(transcript, number) == LayoutPosition(10, 0, 1)
    assert key(transcript, LayoutPosition(0, 0, 0)) < key(transcript, LayoutPosition(6, 0, 0)) < number


def test_selection_copies_source_of_whole_records_and_words_of_parts() -> None:
    records: list[Record] = [
        Prompt("first question"),
        ProseRecord("# One\n\n**bold** words"),
        Prompt("second question"),
    ]
    transcript = stack_of(records)
    start, end = (key(transcript, LayoutPosition(0, 0, 0)), 6), (key(transcript, LayoutPosition(2, 0, 0)), 6)
    assert selected(transcript, start, end) == "question\n\n# One\n\n**bold** words\n\nsecond"
    assert selected(transcript, None, None) == "first question\n\n# One\n\n**bold** words\n\nsecond question"
    row = key(transcript, LayoutPosition(1, 1, 1))
    assert selected(transcript, (row, 0), (row, 4)) == "bold"


def test_a_growing_answer_keeps_its_finished_blocks() -> None:
    text = "".join(f"Paragraph number {at}.\n\n" for at in range(50))
    transcript = stack_of([ProseRecord(text[:200], open=True)])
    transcript.window(FIRST, 1000)
    painted = transcript.lay(0, 0)
    transcript.update(0, ProseRecord(text, open=True))
    assert transcript.lay(0, 0) is painted
    transcript.update(0, ProseRecord(text))
    assert [line.text for _, line in transcript.window(FIRST, 1000) if line.text] == text.split("\n")[:-1:2]


def test_search_counts_every_hit_and_goes_round() -> None:
    search = TranscriptSearch("number")
    search.over(talk(10), 9)
    assert search.tally == "5/5"
    search.step(1)
    assert search.tally == "1/5"
    assert search.current == (1, 0)
    exact = TranscriptSearch("Number")
    exact.over(talk(10), 0)
    assert exact.tally == "not found"


def test_prose_that_comes_faster_than_it_can_be_cut_is_all_there_in_the_end() -> None:
    words = "".join(f"| {number} | cell |\n" for number in range(60_000))
    transcript = stack_of([Prompt("go"), ProseRecord("Words.\n\n", open=True)])
    transcript.update(1, ProseRecord("Words.\n\n" + words, open=True))
    transcript.update(1, ProseRecord("Words.\n\n" + words + "\n\nThe end."))
    while transcript.behind:
        transcript.catch_up()
    assert transcript.window(transcript.last(), 1)[0].line.text == "The end."
    blocks = transcript.layouts[1].opened()[0]
    assert sum(block.chunk.text.count("cell") for block in blocks if block.chunk) == 60_000
