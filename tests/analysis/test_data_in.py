"""Data files become tables: formats, encodings, conversions, bad rows, names, and one clear line for what is broken."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from ba_tui.core.ports.tables import Dataset
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.errors import DataUnreadable

pytestmark = pytest.mark.asyncio(loop_scope="module")

Put = Callable[[str, bytes | str], str]


async def read(engine: Analysis, source: str) -> tuple[Dataset, list[list[Any]]]:
    """The one dataset of a source, and its rows."""
    (dataset,) = await engine.register(source)
    page = await engine.page(dataset.name)
    return dataset, [list(row) for row in page.rows]


def kinds(dataset: Dataset) -> dict[str, str]:
    return {column.name: column.type for column in dataset.columns}


def zipped(*names: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name in names:
            archive.writestr(name, "a,b\n1,2\n")
    return made.getvalue()


async def test_a_table_has_the_types_of_its_values(engine: Analysis, put: Put) -> None:
    source = put("sales.csv", "id,day,region,amount,ok\n1,2024-05-01,North,10.5,true\n2,2024-05-02,South,,false\n")
    dataset, rows = await read(engine, source)
    assert kinds(dataset) == {"id": "BIGINT", "day": "DATE", "region": "VARCHAR", "amount": "DOUBLE", "ok": "BOOLEAN"}
    assert rows == [[1, "2024-05-01", "North", 10.5, True], [2, "2024-05-02", "South", None, False]]
    assert (dataset.source, dataset.rows, dataset.format, dataset.encoding) == (source, 2, "csv", "utf-8")
    (file,) = dataset.files
    assert Path(file.path).name == "sales.csv"
    assert file.size == Path(file.path).stat().st_size
    assert len(file.sha256) == 64


@pytest.mark.parametrize(
    ("encoding", "told"),
    [("utf-8-sig", "utf-8"), ("utf-16", "utf-16"), ("cp1252", "cp1252"), ("utf-16-le", "utf-16-le")],
)
async def test_text_is_read_in_its_encoding(engine: Analysis, put: Put, encoding: str, told: str) -> None:
    text = "stadt;größe\n" + "".join(f"Köln {n};{n}\nMünchen {n};{n}\nGroß-Gerau {n};{n}\n" for n in range(9))
    dataset, rows = await read(engine, put("städte.csv", text.encode(encoding)))
    assert dataset.encoding == told
    assert rows[:2] == [["Köln 0", 0], ["München 0", 0]]
    assert [column.name for column in dataset.columns] == ["stadt", "größe"]


@pytest.mark.parametrize(
    ("values", "kind", "first", "what"),
    [
        (["1.234,50 €", "7,25 €", "-3,00 €"], "DECIMAL(18,2)", "1234.50", "currency €, decimal comma"),
        (["$1,234.50", "$7.25", "($3.00)"], "DECIMAL(18,2)", "1234.50", "currency $, thousands separators"),
        (["12,5 %", "3 %", "100 %"], "DECIMAL(18,1)", "12.5", "percent (5 means 5 %), decimal comma"),
        (["1 234 567", "12", "345"], "BIGINT", 1234567, "numbers among other text"),
        (["1,234", "12,345", "999"], "BIGINT", 1234, "thousands separators"),
        (["13 Jan 2024", "14 Feb 2024", "1 Mar 2024"], "DATE", "2024-01-13", "dates written %d %b %Y"),
        (
            ["1.5.24 10:00", "2.5.24 11:30", "31.5.24 9:15"],
            "TIMESTAMP",
            "2024-05-01 10:00:00",
            "dates written %d.%m.%y %H:%M",
        ),
        (["2024-01-13", "14.01.2024", "01.02.2024"], "DATE", "2024-01-13", "dates written %d.%m.%Y and %Y-%m-%d"),
        (["3. März 2024", "14. Dezember 2024", "1. Mai 2024"], "DATE", "2024-03-03", "dates with names of months"),
        (["1er août 2024", "14 févr. 2024", "2 décembre 2024"], "DATE", "2024-08-01", "dates with names of months"),
        (["1'234.50", "22'000.00", "12.25"], "DECIMAL(18,2)", "1234.50", "numbers among other text"),
    ],
)
async def test_numbers_and_dates_are_understood(
    engine: Analysis, put: Put, values: list[str], kind: str, first: object, what: str
) -> None:
    lines = "".join(f'{n};"{value}"\n' for n, value in enumerate(values * 3))
    dataset, rows = await read(engine, put("amounts.csv", f"n;v\n{lines}"))
    assert kinds(dataset)["v"] == kind
    assert rows[0][1] == first
    assert [each.what for each in dataset.conversions] == [what]


async def test_dates_that_could_be_read_otherwise_are_told(engine: Analysis, put: Put) -> None:
    dataset, rows = await read(engine, put("us.csv", "d,n\n01/02/2024,1\n05/06/2024,2\n"))
    assert "day and month may be the other way round" in dataset.notes[0]
    dataset, rows = await read(engine, put("eu.csv", "d,n\n13/02/2024,1\n05/06/2024,2\n"))
    assert (dataset.notes, rows[0][0]) == ((), "2024-02-13")


async def test_values_that_do_not_fit_are_counted_and_kept(engine: Analysis, put: Put) -> None:
    values = [*(str(n) for n in range(60)), "n/a", "twelve", "-"]
    dataset, rows = await read(engine, put("mixed.csv", "n,v\n" + "".join(f"{n},{v}\n" for n, v in enumerate(values))))
    (conversion,) = dataset.conversions
    assert (conversion.failed, conversion.examples, conversion.raw) == (1, ("twelve",), "v_raw")
    assert kinds(dataset) == {"n": "BIGINT", "v": "BIGINT", "v_raw": "VARCHAR"}
    assert rows[-2] == [61, None, "twelve"]
    assert rows[-3] == [60, None, "n/a"]


async def test_digits_that_spaces_keep_apart_are_no_number(engine: Analysis, put: Put) -> None:
    dataset, rows = await read(engine, put("codes.csv", "code,n\n1 2,1\n12 34 56,2\n7 8,3\n"))
    assert (kinds(dataset)["code"], dataset.conversions, rows[1][0]) == ("VARCHAR", (), "12 34 56")


async def test_titles_above_the_header_are_skipped_and_told(engine: Analysis, put: Put) -> None:
    titles = "Report;;\nCreated 2024-05-01;;\n\n"
    dataset, rows = await read(engine, put("titled.csv", f"{titles}Region;Units;Price\nNorth;1;2,5\nSouth;3;4,5\n"))
    assert rows == [["North", 1, "2.5"], ["South", 3, "4.5"]]
    assert dataset.notes == ("3 lines before the header were skipped.",)
    dataset, rows = await read(engine, put("plain.csv", ",a,b\n0,1,\n1,,2\n"))
    assert (dataset.notes, rows) == ((), [[0, 1, None], [1, None, 2]])


async def test_times_with_zones_are_profiled(engine: Analysis, put: Put) -> None:
    times = ("2024-05-01T10:00:00+02:00", "2024-05-01T12:00:00+02:00", "2024-05-01T17:00:00+02:00")
    lines = "".join(f"{time},{number}\n" for number, time in enumerate(times))
    dataset, rows = await read(engine, put("zones.csv", f"t,n\n{lines}"))
    assert kinds(dataset)["t"] == "TIMESTAMP WITH TIME ZONE"
    profile = await engine.profile(dataset.name)
    assert (
        profile.columns[0].quartiles
        == tuple(row[0] for row in rows)
        == (
            "2024-05-01 08:00:00+00",
            "2024-05-01 10:00:00+00",
            "2024-05-01 15:00:00+00",
        )
    )


async def test_nested_and_huge_values_of_parquet(engine: Analysis, files: Path) -> None:
    made = await engine.query(
        "SELECT 1 AS id, {'a': [1, 2]} AS s, [{'k': 1}] AS l, MAP {'x': 1} AS m, 'nan'::DOUBLE AS n, "
        "170141183460469231731687303715884105727::HUGEINT AS h, '12:00'::TIME AS t, 'ab'::BLOB AS b"
    )
    assert made.head[0][5] == 170141183460469231731687303715884105727
    async with engine.exported(made.handle, "parquet") as path:
        (files / "nested.parquet").write_bytes(path.read_bytes())
    dataset, rows = await read(engine, "nested.parquet")
    assert rows[0][:4] == [1, "{'a': [1, 2]}", "[{'k': 1}]", "{x=1}"]
    assert len((await engine.profile(dataset.name)).columns) == 8


async def test_many_files_are_one_table_without_the_empty_ones(engine: Analysis, files: Path) -> None:
    folder = files / "months"
    folder.mkdir()
    for number in range(60):
        (folder / f"{number:03}.csv").write_text(f"id,v\n{number},{number * 2}\n" if number % 20 else "")
    dataset, rows = await read(engine, "months/*.csv")
    assert (dataset.name, len(rows), len(dataset.files)) == ("months", 57, 60)
    assert dataset.notes == ("3 empty files left out: 000.csv, 020.csv, 040.csv",)
    (folder / "000.csv").write_text("id,v\n0,0\n")
    assert (await engine.query("SELECT count(*) FROM months")).head == ((58,),)


async def test_leading_zeros_stay(engine: Analysis, put: Put) -> None:
    dataset, rows = await read(engine, put("zip.csv", "zip,n\n01234,1\n99999,2\n"))
    assert (kinds(dataset)["zip"], rows[0][0]) == ("VARCHAR", "01234")


async def test_a_late_word_among_numbers_loses_no_row(engine: Analysis, put: Put) -> None:
    lines = "".join(f"{n},{n}\n" for n in range(25_000))
    dataset, _ = await read(engine, put("late.csv", f"n,v\n{lines}25000,unknown\n"))
    assert (dataset.rows, dataset.rows_skipped) == (25_001, 0)
    assert kinds(dataset)["v"] == "BIGINT"
    assert dataset.conversions[0].examples == ("unknown",)


async def test_bad_rows_are_counted_and_shown(engine: Analysis, put: Put) -> None:
    dataset, rows = await read(engine, put("bad.csv", "a,b\n1,2\n3\n4,5,6\n7,8\n"))
    assert rows == [[1, 2], [7, 8]]
    assert dataset.rows_skipped == 2
    shown = [(bad.line, bad.reason, bad.text) for bad in dataset.bad_rows]
    assert shown == [(3, "too few columns", "3"), (4, "too many columns", "4,5,6")]


async def test_json_and_its_bad_lines(engine: Analysis, put: Put) -> None:
    dataset, rows = await read(engine, put("a.json", json.dumps([{"a": 1, "b": {"c": "x"}}, {"a": 2, "b": None}])))
    assert (dataset.format, rows[0][0], rows[1]) == ("json", 1, [2, None])
    dataset, rows = await read(engine, put("a.jsonl", '{"a": 1}\n{"a": 2}\n{"a": 3\n{"a": 4}\n'))
    assert rows == [[1], [2], [4]]
    assert [(bad.line, bad.text) for bad in dataset.bad_rows] == [(3, '{"a": 3')]


async def test_a_compressed_file_and_a_glob(engine: Analysis, put: Put, files: Path) -> None:
    dataset, rows = await read(engine, put("packed.csv.gz", gzip.compress(b"a,b\n1,x\n")))
    assert (dataset.name, rows) == ("packed", [[1, "x"]])
    (files / "many").mkdir()
    for month in (1, 2):
        (files / "many" / f"2024-0{month}.csv").write_text(f"month,n\n{month},7\n")
    dataset, rows = await read(engine, "many/*.csv")
    assert sorted(rows) == [[1, 7], [2, 7]]
    assert len(dataset.files) == 2
    async with engine.exported(dataset.name, "parquet") as path:
        (files / "p.parquet").write_bytes(path.read_bytes())
    dataset, rows = await read(engine, "p.parquet")
    assert (dataset.format, sorted(rows)) == ("parquet", [[1, 7], [2, 7]])


async def test_a_glob_names_the_links_to_folders_that_it_does_not_follow(engine: Analysis, files: Path) -> None:
    (files / "years" / "2024").mkdir(parents=True)
    (files / "years" / "2024" / "a.csv").write_text("n\n1\n")
    for name, target in (("latest", "2024"), ("loop", "..")):
        (files / "years" / name).symlink_to(target)
    (dataset,) = await engine.register("years/**/*.csv")
    assert dataset.rows == 1
    assert dataset.notes[-1].startswith("Links to folders are not followed: latest. Name one")
    (named,) = await engine.register("years/latest/*.csv")
    assert (named.rows, named.notes) == (1, ())
    with pytest.raises(DataUnreadable) as raised:
        await engine.register("years/**/*.parquet")
    assert "latest" in raised.value.hint


async def test_arrow_files(engine: Analysis, files: Path) -> None:
    from arro3 import core, io

    table = core.Table.from_pydict(
        {"a": core.Array([1, 2], core.DataType.int64()), "b": core.Array(["x", "y"], core.DataType.utf8())}
    )
    io.write_ipc(table, files / "t.feather", compression="zstd")
    io.write_ipc_stream(table, files / "t.arrows", compression=None)
    for name in ("t.feather", "t.arrows"):
        dataset, rows = await read(engine, name)
        assert (dataset.format, rows) == ("arrow", [[1, "x"], [2, "y"]])
    (files / "cut.arrow").write_bytes((files / "t.feather").read_bytes()[:60])
    with pytest.raises(DataUnreadable, match=r"cut\.arrow can't be read as Arrow data"):
        await engine.register("cut.arrow")


async def test_sheets_become_tables(engine: Analysis, files: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet
    sheet.title = "Umsatz 2024"
    for row in (["Report of May"], ["Region", "Amount", "Day"], ["North", 10.5, None], ["South", 3, None]):
        sheet.append(row)
    sheet.merge_cells("A1:C1")
    sheet["D2"], sheet["D3"] = "Sum", "=B3*2"
    book.create_sheet("Empty")
    more = book.create_sheet("Other")
    more.append(["a", "b"])
    more.append([1, "x"])
    book.save(files / "book.xlsx")
    first, second = await engine.register("book.xlsx")
    assert (first.name, first.part, second.name) == ("book_umsatz_2024", "Umsatz 2024", "book_other")
    assert first.notes == (
        "1 row above the header was skipped.",
        "1 merged range: only the first cell of each holds its value.",
    )
    page = await engine.page(first.name)
    assert [row[:2] for row in page.rows] == [("North", 10.5), ("South", 3.0)]
    assert await engine.register("book.xlsx", part="other") == (second,)
    with pytest.raises(DataUnreadable, match=r"book\.xlsx has no sheet May"):
        await engine.register("book.xlsx", part="May")


async def test_tables_of_sqlite(engine: Analysis, files: Path) -> None:
    with sqlite3.connect(files / "shop.sqlite") as base:
        base.execute("create table orders (id integer, code text, price real, note)")
        base.executemany("insert into orders values (?, ?, ?, ?)", [(1, "007", 2.5, None), (2, "", 3, b"\x01\xff")])
        base.execute("create view dear as select * from orders where price > 2.7")
    base.close()
    dear, orders = await engine.register("shop.sqlite")
    assert (dear.name, orders.name) == ("shop_dear", "shop_orders")
    page = await engine.page(orders.name)
    assert page.rows == ((1, "007", 2.5, None), (2, "", 3.0, "01ff"))


async def test_names_are_short_unique_and_never_those_of_results(engine: Analysis, put: Put) -> None:
    names = [(await read(engine, put(name, "a\n1\n")))[0].name for name in ("R1.csv", "R1.csv", "2024 Über (x).csv")]
    assert names == ["t_r1", "t_r1_2", "t_2024_über_x"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.csv", b"", "empty.csv is empty."),
        ("blank.csv", b"\n\n  \n", "blank.csv holds no rows"),
        ("page.csv", b"<!DOCTYPE html>\n<html><body>Not found</body></html>", "page.csv is a web page (HTML)"),
        ("broken.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 5_000, mtime=0)[:60], "broken.csv.gz"),
        ("not.csv.gz", b"\x1f\x8bnothing", "not.csv.gz is a broken gzip file"),
        ("is.parquet", b"a,b\n1,2\n", "is.parquet is not a Parquet file"),
        ("cut.parquet", b"PAR1" + b"\0" * 100, "cut.parquet can't be read as Parquet"),
        ("doc.csv", b"%PDF-1.7\n", "doc.csv is a PDF document"),
        ("nothing.csv", b"\0" * 100_000, "nothing.csv begins with nothing but NUL bytes"),
        ("data.zip", zipped("a.csv", "b.csv"), "data.zip is a zip archive of 2 files, not a table."),
        (
            "letter.docx",
            zipped("[Content_Types].xml", "word/document.xml"),
            "letter.docx is an Office document without",
        ),
        ("cut.xlsx", b"PK\x03\x04" + b"\1" * 100, "cut.xlsx can't be read as a workbook"),
        ("cut.sqlite", b"SQLite format 3\0" + b"\1" * 3_000, "cut.sqlite can't be read as an SQLite database"),
        ("broken.json", b'{"a": [1, 2', "broken.json is not valid JSON"),
        ("image.csv", bytes(range(1, 32)) * 400, "image.csv is a binary file"),
    ],
)
async def test_what_is_no_table_is_one_line(engine: Analysis, put: Put, name: str, content: bytes, said: str) -> None:
    with pytest.raises(DataUnreadable) as caught:
        await engine.register(put(name, content))
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


async def test_odd_tables_are_read(engine: Analysis, put: Put) -> None:
    dataset, rows = await read(engine, put("head.csv", "a,b\n"))
    assert (dataset.rows, rows, len(dataset.columns)) == (0, [], 2)
    dataset, rows = await read(engine, put("one.csv", "a\n1\n2\n"))
    assert rows == [[1], [2]]
    dataset, rows = await read(engine, put("nul.csv", b"a,b\n1,x\0y\n2,z\n"))
    assert rows == [[1, "x\0y"], [2, "z"]]
    dataset, rows = await read(engine, put("right.csv", codecs.BOM_UTF8 + b"PAR,b\n1,2\n"))
    assert [column.name for column in dataset.columns] == ["PAR", "b"]


async def test_a_huge_cell_and_many_columns(engine: Analysis, put: Put) -> None:
    # DuckDB takes lines of 2 MB unless it is told otherwise.
    dataset, rows = await read(engine, put("cell.csv", b"a,b\n1," + b"x" * 2_100_000 + b"\n2,y\n"))
    assert dataset.rows == 2
    assert len(str(rows[0][1])) == 10_001
    header = ",".join(f"c{n}" for n in range(250))
    dataset, rows = await read(engine, put("wide.csv", f"{header}\n{','.join('1' * 250)}\n"))
    assert (len(dataset.columns), rows[0][249]) == (250, 1)


async def test_what_is_no_file_is_not_opened(engine: Analysis, files: Path) -> None:
    os.mkfifo(files / "pipe.csv")
    with pytest.raises(DataUnreadable, match=r"pipe\.csv is not a regular file"):
        await engine.register("pipe.csv")
    (files / "folder").mkdir()
    with pytest.raises(DataUnreadable, match="folder is a folder"):
        await engine.register("folder")
    with pytest.raises(DataUnreadable, match=r"gone\.csv: No such file"):
        await engine.register("gone.csv")
    with pytest.raises(DataUnreadable, match=r"No file matches none/\*.csv"):
        await engine.register("none/*.csv")
    with (files / "sparse.csv").open("wb") as file:
        file.truncate(50_000_000_000)
    with pytest.raises(DataUnreadable, match="begins with nothing but NUL bytes"):
        await engine.register("sparse.csv")


async def test_a_locked_database_says_so(engine: Analysis, files: Path) -> None:
    base = sqlite3.connect(files / "busy.sqlite")
    base.execute("create table t (a)")
    base.commit()
    base.execute("begin exclusive")
    try:
        with pytest.raises(DataUnreadable, match=r"busy\.sqlite is locked by another program"):
            await engine.register("busy.sqlite")
    finally:
        base.rollback()
        base.close()
