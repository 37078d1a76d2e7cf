"""chart.py: what is drawn is what the rows say, and what cannot be drawn is counted."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from tests.bundled_skills.bench import Bench

CHART = "charts/chart.py"
ROWS = "month,region,amount\n2024-01,N,10\n2024-01,S,7\n2024-02,N,12.5\n2024-02,S,\n2024-04,N,9\n2024-04,S,-3\n"


def shapes(bench: Bench, name: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring((bench.folder / name).read_text("utf-8")).iter())


def test_bars_are_as_high_as_their_values(bench: Bench) -> None:
    bench.write("m.csv", ROWS)
    args = {
        "kind": "bar",
        "path": "m.csv",
        "x": "region",
        "y": "amount",
        "aggregate": "sum",
        "sort": "-y",
        "unit": "EUR",
    }
    said = bench.run(CHART, {**args, "title": "A <b> & c", "output": "c/bar.svg"})
    assert (said["rows"], said["drawn"], said["left_out"]) == (6, 2, {"no number": 1})
    assert said["values"] == {"min": 4.0, "max": 31.5, "sum": 35.5}
    assert said["says"] == "Bar chart of 2 values; lowest S: 4 EUR, highest N: 31.5 EUR."
    found = shapes(bench, "c/bar.svg")
    assert next(one.text for one in found if one.tag.endswith("}title")) == "A <b> & c"
    bars = [one for one in found if one.tag.endswith("}rect") and len(one)]
    assert [bar[0].text for bar in bars] == ["N: 31.5", "S: 4"]
    high, low = (float(bar.attrib["height"]) for bar in bars)
    assert abs(high / low - 31.5 / 4) < 0.02


def test_a_gap_in_time_is_a_gap(bench: Bench) -> None:
    bench.write("m.csv", ROWS)
    args = {"kind": "line", "path": "m.csv", "x": "month", "y": "amount", "group": "region", "output": "line.svg"}
    assert bench.run(CHART, args)["drawn"] == 5
    line = next(one for one in shapes(bench, "line.svg") if one.tag.endswith("}polyline"))
    first, second, third = (float(point.split(",")[0]) for point in line.attrib["points"].split())
    assert 1.8 < (third - second) / (second - first) < 2.2


def test_a_histogram_counts_every_value(bench: Bench) -> None:
    data = [{"x": value} for value in (0, 1, 1.5, 2, 9.9, 10)]
    said = bench.run(CHART, {"kind": "hist", "data": data, "bins": 5, "output": "h.svg"})
    tips = re.findall(r"<title>[\d.]+ to [\d.]+: (\d+)</title>", (bench.folder / "h.svg").read_text("utf-8"))
    assert (said["drawn"], [int(tip) for tip in tips]) == (6, [3, 1, 0, 0, 2])


def test_single_and_equal_points_can_be_drawn(bench: Bench) -> None:
    for kind in ("scatter", "line"):
        bench.run(CHART, {"kind": kind, "data": [{"x": 5, "y": 3}], "output": f"{kind}.svg"})
        assert "nan" not in (bench.folder / f"{kind}.svg").read_text("utf-8").lower()


def test_what_would_mislead_is_refused(bench: Bench) -> None:
    bench.write("m.csv", ROWS)
    args = {"kind": "bar", "path": "m.csv", "x": "month", "y": "amount", "output": "x.svg"}
    assert "'2024-01' has several rows" in bench.refused(CHART, args)
    assert "there are amount, month, region" in bench.refused(CHART, {**args, "x": "day"})
    assert "nothing to draw: 6 rows" in bench.refused(CHART, {**args, "y": "region"})
    assert "bar, line, scatter or hist" in bench.refused(CHART, {**args, "kind": "pie"})
