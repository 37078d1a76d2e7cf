"""profile.py: what it says of a table is true, and what would make a figure wrong is found."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import statistics

from tests.bundled_skills.bench import Bench

PROFILE = "data-analysis/profile.py"
MESSY = """\
Sales report 2024

order;date;region;amount;zip;note
1;01/02/2024;North;1.200,50;01234;x
2;03/02/2024;north;300,00;01235; y
2;03/02/2024;north;300,00;01235; y
3;25/05/2024;South;N/A;01236;
4;25/05/2024;Total;12,00;01237;z
5;bad
"""


def test_figures_are_those_of_the_data(bench: Bench) -> None:
    draw = random.Random(7)
    amounts = [round(draw.uniform(-50, 900), 2) for _ in range(500)]
    rows = "\n".join(f"{at},{'ABC'[at % 3]},{amount},2024-0{at % 3 + 1}-15" for at, amount in enumerate(amounts))
    bench.write("s.csv", f"id,region,amount,day\n{rows}\n")
    said = bench.run(PROFILE, {"path": "s.csv", "key": ["id"]})
    assert (said["rows"], said["complete"], said["duplicate_rows"]) == (500, True, 0)
    assert said["unique_columns"] == ["id"]
    assert said["key"] == {"columns": ["id"], "unique": True, "repeated": []}
    ids, region, amount, day = said["columns"]
    assert ids["type"] == "number"
    assert region["top"] == [["A", 167], ["B", 167], ["C", 166]]
    assert amount["sum"] == round(sum(round(value * 100) for value in amounts) / 100, 2)
    assert (amount["min"], amount["max"]) == (min(amounts), max(amounts))
    assert abs(amount["stdev"] - statistics.stdev(amounts)) < 1e-4
    assert amount["negative"] == sum(value < 0 for value in amounts)
    assert (day["type"], day["first"], day["last"]) == ("date", "2024-01-15", "2024-03-15")
    assert said["source"]["sha256"] == hashlib.sha256((bench.folder / "s.csv").read_bytes()).hexdigest()


def test_what_makes_figures_wrong_is_told(bench: Bench) -> None:
    (bench.folder / "m.csv").write_bytes(MESSY.encode("cp1252"))
    said = bench.run(PROFILE, {"path": "m.csv", "key": ["order"]})
    read = said["source"]
    assert (read["delimiter"], read["header"], read["lines_before_header"]) == (";", True, 2)
    assert (said["rows"], said["rows_left_out"]["wrong_width"], said["duplicate_rows"]) == (5, 1, 1)
    assert said["key"]["repeated"] == [["2", 2]]
    columns = {column["name"]: column for column in said["columns"]}
    assert columns["amount"]["sum"] == 1812.5
    assert columns["amount"]["placeholders"] == {"N/A": 1}
    assert (columns["date"]["first"], columns["date"]["last"]) == ("2024-02-01", "2024-05-25")
    assert columns["date"]["months_without_rows"] == ["2024-03", "2024-04"]
    beware = "\n".join(said["beware"])
    for found in (
        "day first",
        "North / north",
        "totals row",
        "decimal commas",
        "begin with 0",
        "spaces around",
        "repeat",
    ):
        assert found in beware


def test_dates_that_can_be_read_both_ways_are_not_guessed_silently(bench: Bench) -> None:
    bench.write("d.csv", "d,n\n01/02/2024,1\n03/04/2024,2\n")
    assert "cannot be told apart" in "\n".join(bench.run(PROFILE, {"path": "d.csv"})["beware"])


def test_a_quote_that_is_not_closed_is_told(bench: Bench) -> None:
    lines = "\n".join(f"{n},x" for n in range(40))
    bench.write("q.csv", f'n,note\n1,"open\n{lines}\n')
    assert "is a quote not closed" in "\n".join(bench.run(PROFILE, {"path": "q.csv"})["beware"])


def test_json_and_packed_files_are_read(bench: Bench) -> None:
    records = [{"a": 1, "b": None}, {"a": 2.5, "b": "x", "c": True}]
    bench.write("r.json", json.dumps({"items": records}))
    assert "/items" in bench.refused(PROFILE, {"path": "r.json"})
    said = bench.run(PROFILE, {"path": "r.json", "pointer": "/items"})
    assert [(c["name"], c["type"], c["filled"]) for c in said["columns"]] == [
        ("a", "number", 2),
        ("b", "text", 1),
        ("c", "boolean", 1),
    ]
    with gzip.open(bench.folder / "l.jsonl.gz", "wt") as file:
        file.write("\n".join(map(json.dumps, records)) + "\nnot json\n")
    said = bench.run(PROFILE, {"path": "l.jsonl.gz"})
    assert (said["rows"], said["rows_left_out"]["wrong_width"]) == (2, 1)


def test_files_that_are_no_tables_are_refused_or_empty(bench: Bench) -> None:
    bench.write("empty.csv", "")
    assert bench.run(PROFILE, {"path": "empty.csv"})["rows"] == 0
    bench.write("x.csv.gz", "not packed")
    assert "x.csv.gz" in bench.refused(PROFILE, {"path": "x.csv.gz"})
    bench.write("book.xlsx", "x")
    assert "the skills xlsx and sql" in bench.refused(PROFILE, {"path": "book.xlsx"})
