"""Charts as text: what is drawn follows from the values, fits the room, and can be read without colour."""

from __future__ import annotations

import math

import pytest

from ba_tui.core.results import Box, Chart, ChartKind, ChartRequest, ChartSeries
from ba_tui.core.text.cells import width_of
from ba_tui.plotting.canvas import ASCII, UNICODE, DrawingArea, Signs
from ba_tui.plotting.drawing import drawn, signs_for, text_of
from ba_tui.plotting.scales import number_label, number_scale, time_label, time_scale, unit_of

DAY = 86_400.0
JULY = 1_783_900_800.0


def bars(*values: float | None, labels: tuple[str, ...] = (), **request: object) -> Chart:
    names = labels or tuple(f"c{place}" for place in range(len(values)))
    series = ChartSeries("amount", tuple(map(float, range(len(values)))), values)
    wanted = ChartRequest("R1", "bar", **request)  # pyright: ignore[reportArgumentType]
    return Chart(wanted, "category", "region", "sum of amount", (series,), names)


def lines(kind: ChartKind, *series: tuple[float | None, ...], axis: str = "time") -> Chart:
    made = tuple(
        ChartSeries(f"s{number}", tuple(JULY + place * DAY for place in range(len(values))), values)
        for number, values in enumerate(series)
    )
    return Chart(ChartRequest("R1", kind), "time", "day", "amount", made)


HISTOGRAM = ChartSeries("rows", (0, 5, 10), (1, 9, 3))
BOXES = (Box("a", 1, 2, 3, 4, 9, 30, 2), Box("b", 5, 5, 5, 5, 5, 1))
HEAT = tuple(ChartSeries(f"r{row}", (0, 1), (row, 5.5)) for row in range(30))
CHARTS = [
    bars(1234.5, 900, -300, 0),
    bars(5),
    bars(*(float(number) for number in range(150))),
    bars(3, 2, labels=("上海浦东发展银行股份有限公司", "a long name " * 9)),
    bars(1, 1000, 100000, log=True),
    lines("line", tuple(math.sin(each / 9) for each in range(200))),
    lines("line", (1, None, 3, 3), (4, 5, None, 7)),
    lines("line", (5,)),
    lines("line", (2, 2, 2)),
    lines("area", (1, 2, 3), (3, 2, 1)),
    Chart(ChartRequest("R1", "scatter"), "number", "x", "y", (ChartSeries("y", (0, 1, 2), (-1e9, 0, 1e12)),)),
    Chart(ChartRequest("R1", "histogram"), "number", "age", "rows", (HISTOGRAM,), step=5),
    Chart(ChartRequest("R1", "box"), "category", "g", "v", boxes=BOXES),
    Chart(ChartRequest("R1", "heatmap", series="r"), "category", "m", "n", HEAT, ("Jan", "Feb")),
    Chart(ChartRequest("R1", "pie"), "category", "g", "v", (ChartSeries("v", (0, 1), (1, 3)),), ("a", "b")),
    Chart(ChartRequest("R1", "bar"), "category", "g", "v", notes=("3 rows are left out.",)),
]  # fmt: skip


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: f"{chart.kind}-{len(chart.series)}")
@pytest.mark.parametrize(("width", "height"), [(24, 5), (80, 24), (200, 50)])
@pytest.mark.parametrize("signs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_every_chart_fits_its_room(chart: Chart, width: int, height: int, signs: Signs) -> None:
    found = drawn(chart, DrawingArea(width, height, signs, bare=height < 10))
    texts = ["".join(run.text for run in line) for line in found]
    assert max(map(width_of, texts)) <= width
    assert len(texts) <= max(height, 7)
    assert any(text.strip() for text in texts)
    if signs is ASCII:
        assert not [sign for text in texts for sign in text if ord(sign) > 127 and not "一" <= sign <= "鿿"]


def test_bars_are_as_long_as_their_values() -> None:
    shown = text_of(bars(100, 50, 25, labels=("first of all categories", "second of all them", "third one")), 80)
    lengths = [line.count("█") for line in shown.split("\n")[1:4]]
    assert lengths[0] > 30
    assert abs(lengths[0] / lengths[1] - 2) < 0.1
    assert abs(lengths[1] / lengths[2] - 2) < 0.2
    assert shown.split("\n")[1].endswith(" 100")


def test_short_names_stand_below_upright_bars_and_long_ones_beside_lying_bars() -> None:
    upright = text_of(bars(4, 2, labels=("North", "South")), 60).split("\n")
    assert upright[-1].split() == ["North", "South"]
    assert any(line.startswith("4 ┤") for line in upright)
    lying = text_of(bars(4, 2, labels=("Northern territories of the company", "South")), 60).split("\n")
    assert lying[1].startswith("Northern territorie…")


def test_negative_bars_hang_below_zero() -> None:
    shown = text_of(bars(5, -5), 40).split("\n")
    zero = next(at for at, line in enumerate(shown) if line.strip().startswith("0"))
    assert any("█" in line[:20] for line in shown[:zero])
    assert any("█" in line[20:] and "█" not in line[:20] for line in shown[zero + 1 :])


def test_series_are_told_apart_without_colour() -> None:
    shown = text_of(lines("line", (1, 2, 3), (3, 2, 1)), 60)
    assert "● s0  ▲ s1" in shown
    assert shown.count("●") > 2
    assert shown.count("▲") > 2
    plain = text_of(lines("area", (1, 2, 3), (3, 2, 1)), 60, ASCII)
    assert "# s0  . s1" in plain
    assert plain.isascii()


def test_a_gap_in_a_line_stays_a_gap() -> None:
    def dots(*values: float | None) -> int:
        return sum(0x2801 <= ord(sign) <= 0x28FF for sign in text_of(lines("line", values), 60))

    assert dots(1, 1, None, 1, 1) < dots(1, 1, 1, 1, 1)


def test_what_does_not_fit_is_counted() -> None:
    chart = bars(*(float(number) for number in range(150)))
    fits = ["".join(run.text for run in line) for line in drawn(chart, DrawingArea(80, 10))]
    assert fits[-1] == "… 142 more"
    assert len(drawn(chart, DrawingArea(80, 10, grow=True))) == 151


def test_names_from_data_can_not_move_the_cursor() -> None:
    chart = bars(1, 2, labels=("\x1b[2Jred\nline", "‮back"), title="a\x07 title\x1b]0;x\x07")
    shown = text_of(chart)
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "‮" not in shown


def test_titles_units_and_notes() -> None:
    chart = bars(1, 2, title="North leads", unit="EUR")
    assert text_of(chart).split("\n")[0] == "North leads"
    assert "sum of amount by region (EUR)" in text_of(chart)
    assert text_of(CHARTS[-1]).split("\n") == ["v by g", "No data to draw.", "3 rows are left out."]


def test_axes_have_round_ticks() -> None:
    assert number_scale(0, 1_234_567, 4).labels == ("0", "500,000", "1,000,000", "1,500,000")
    assert number_scale(-3.2, 7.1, 4).ticks == (-5, 0, 5, 10)
    assert number_scale(2.5, 90_000, 6, log=True).labels == ("1", "10", "100", "1,000", "10,000", "100,000")
    assert number_scale(7, 7, 4).low < 7 < number_scale(7, 7, 4).high
    assert time_scale(JULY, JULY + 400 * DAY, 5).labels == ("2026-10", "2027-01", "2027-04", "2027-07")
    minutes = [label[6:] for label in time_scale(JULY, JULY + 3_600, 4).labels]
    assert minutes == ["00:00", "00:15", "00:30", "00:45", "01:00"]
    assert [number_label(value) for value in (0.5, 1234.567, 12_345_678, 2.5e10, 1e-7)] == [
        "0.5", "1,234.57", "12.3457M", "25bn", "1e-07",
    ]  # fmt: skip
    assert time_label(JULY, "quarter") == "2026 Q3"
    assert unit_of((JULY, JULY + 31 * DAY)) == "day"


def test_consoles_without_braille_get_ascii() -> None:
    assert signs_for({"TERM": "xterm-256color"}) is UNICODE
    assert signs_for({"TERM": "linux"}) is ASCII
    assert signs_for({}, "latin-1") is ASCII
