"""The figures of an answer in the conversation: marks in the words, a line below, the same live and stored."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from rich.segment import Segment
from rich.style import Style

from ba_tui.core.events import Event, FiguresChecked, MessageDone, TextDelta, TurnEnded, TurnStarted
from ba_tui.core.messages import Message, Text, Thinking, user
from ba_tui.core.text.figures import FigureLabel, FigureReport, FigureVerdict
from ba_tui.faces.tui.transcript.figure_marks import FIGURE, AnswerFigures
from ba_tui.faces.tui.transcript.fold import fold
from ba_tui.faces.tui.transcript.layout import RecordLayout
from ba_tui.faces.tui.transcript.lines import PaintedLine
from ba_tui.faces.tui.transcript.palette import ASCII, Palette
from ba_tui.faces.tui.transcript.records import ProseRecord
from ba_tui.faces.tui.transcript.rows import Look

LOOK = Look(80, Palette(unsourced=Style(underline=True)), 0.0)


def verdict(text: str, figure: str, label: FigureLabel, after: int = 0) -> FigureVerdict:
    start = text.index(figure, after)
    return FigureVerdict(figure, start, start + len(figure), label)


def painted(text: str, verdicts: Sequence[FigureVerdict], look: Look = LOOK, place: int = 0) -> list[PaintedLine]:
    record = ProseRecord(text, grounded=AnswerFigures(FigureReport(tuple(verdicts)), "1", place))
    layout = RecordLayout(record, 0, look.width)
    return [line for at in range(len(layout.opened()[0])) for line in layout.lay(at, look, 0)]


def words(lines: Sequence[PaintedLine]) -> str:
    return "\n".join(line.text for line in lines)


def marked(lines: Sequence[PaintedLine]) -> list[tuple[int, str, bool]]:
    """The runs that are figures: number, text, whether underlined."""
    runs = [(_number(segment), segment) for line in lines for segment in line.segments]
    return [
        (number, segment.text, bool(segment.style and segment.style.underline))
        for number, segment in runs
        if number is not None
    ]


def _number(segment: Segment) -> int | None:
    return segment.style.meta.get(FIGURE) if segment.style else None


def test_unsourced_figures_stand_out_and_all_can_be_found() -> None:
    text = "It was **42 %** of 1,300 units.\n\n- then 42 again\n\n| a | b |\n|---|---|\n| 42 | 7.5 |"
    found = [
        verdict(text, "42", "sourced"),
        verdict(text, "1,300", "unsourced"),
        verdict(text, "42", "unsourced", 30),
        verdict(text, "42", "given", text.index("| 42")),
        verdict(text, "7.5", "unsourced"),
    ]
    lines = painted(text, found)
    assert [(number, run) for number, run, under in marked(lines) if not under] == [(0, "42"), (3, "42")]
    assert [run for _, run, under in marked(lines) if under and run != "⁇"] == ["1,300", "42", "7.5"]
    shown = words(lines)
    assert "It was 42 % of 1,300⁇ units." in shown
    assert "7.5⁇" in shown
    assert "5 figures · 1 sourced · 1 given · 3 unsourced · /verify" in shown


def test_the_sign_is_plain_where_letters_are() -> None:
    plain = Look(80, Palette(glyphs=ASCII), 0.0)
    shown = words(painted("It was 42.", [verdict("It was 42.", "42", "unsourced")], plain))
    assert "It was 42[?]." in shown
    assert shown.isascii()


@pytest.mark.parametrize(
    ("text", "figure"),
    [("about **1**,234 units", "**1**,234"), ("a 12`x`", "12"), ("# 5 things", "5"), ("> said 3.5", "3.5")],
)
def test_marks_survive_markdown(text: str, figure: str) -> None:
    lines = painted(text, [verdict(text, figure, "unsourced")])
    assert "".join(run for _, run, _ in marked(lines)) == figure.replace("*", "") + "⁇"


def test_copied_text_and_code_have_no_marks() -> None:
    text = "So 42 it is.\n\n```\nx = 17\n```\n\n`y = 18` and [a](http://x.org/19)"
    found = [verdict(text, each, "unsourced") for each in ("42", "17", "18", "19")]
    lines = painted(text, found)
    assert "x = 17" in words(lines)
    assert "⁇" not in "".join(line.unit.text for line in lines if line.unit)
    assert all(letter < "\ue000" for line in lines for letter in line.text + (line.unit.text if line.unit else ""))


def test_an_answer_with_letters_of_a_private_plane_is_shown_without_marks() -> None:
    text = "\U000f0001 42 \U0010fffd"
    assert marked(painted(text, [verdict(text, "42", "unsourced")])) == []


def test_a_long_answer_is_marked_wherever_it_is_cut() -> None:
    text = "".join(f"Paragraph {at} has {at * 31 % 997} units of it.\n\n" for at in range(400))
    places = [text.index(f" {at * 31 % 997} units", text.index(f"Paragraph {at} ")) + 1 for at in range(400)]
    found = [
        FigureVerdict(str(at * 31 % 997), place, place + len(str(at * 31 % 997)), "sourced")
        for at, place in enumerate(places)
    ]
    assert [(number, run) for number, run, _ in marked(painted(text, found))] == [
        (at, each.text) for at, each in enumerate(found)
    ]


def checked(text: str, *figures: str) -> list[Event]:
    message = Message("assistant", (Thinking("hm"), Text(text)), origin="assistant")
    report = FigureReport(tuple(verdict(text, figure, "sourced") for figure in figures))
    return [TurnStarted(user("how many?")), MessageDone(message), FiguresChecked(message.id, report), TurnEnded("done")]


def test_the_answer_knows_its_figures_live_and_stored() -> None:
    stored = checked("There are 12.", "12")
    (prose,) = [record for record in fold(stored) if isinstance(record, ProseRecord)]
    assert prose.grounded
    assert [each.text for each in prose.grounded.report.verdicts] == ["12"]
    live = fold([stored[0], TextDelta("There "), TextDelta("are 12."), *stored[1:]])
    assert [record for record in live if isinstance(record, ProseRecord)] == [prose]


def test_figures_of_words_on_both_sides_of_a_thought_are_found() -> None:
    message = Message("assistant", (Text("First 12."), Thinking("hm"), Text("Then 34.")), origin="assistant")
    report = FigureReport((FigureVerdict("12", 6, 8, "sourced"), FigureVerdict("34", 14, 16, "unsourced")))
    records = fold([TurnStarted(user("?")), MessageDone(message), FiguresChecked(message.id, report)])
    prose = [record for record in records if isinstance(record, ProseRecord)]
    shown = [words(painted(each.text, report.verdicts, place=each.grounded.place)) for each in prose if each.grounded]
    assert "34⁇" in shown[1]
    assert [each.grounded.last for each in prose if each.grounded] == [False, True]


def test_verdicts_on_another_answer_change_nothing() -> None:
    events = checked("There are 12.", "12")
    (prose,) = [each for each in fold([*events[:2], FiguresChecked("other", FigureReport())]) if _is_prose(each)]
    assert isinstance(prose, ProseRecord)
    assert prose.grounded is None


def _is_prose(record: object) -> bool:
    return isinstance(record, ProseRecord)
