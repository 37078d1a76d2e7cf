"""The scripts of xlsx: values and formulas are told apart, what is written can be read back, errors are found."""

from __future__ import annotations

from pathlib import Path

from openpyxl import Workbook, load_workbook

from tests.bundled_skills.bench import Bench

READ, WRITE, CHECK = "xlsx/read.py", "xlsx/write.py", "xlsx/check.py"


def flawed(path: Path) -> None:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "Plan"
    sheet.append(["n", "twice"])
    for row in range(2, 9):
        sheet.append([row, f"=A{row}*2"])
    sheet["B5"], sheet["B6"], sheet["A8"], sheet["B9"] = 5, "=A6*3", "7", "=#REF!*2"
    sheet["C2"] = "=[other.xlsx]Sheet1!A1"
    hidden = book.create_sheet("Hidden")
    hidden.sheet_state = "hidden"
    hidden["A1"] = "=cmd"
    book.save(path)


def test_a_workbook_is_written_and_read_back(bench: Bench) -> None:
    bench.write("s.csv", "day,code,amount,note\n2024-01-31,007,1200.5,=1+1\n2024-02-29,008,-3,\n")
    columns = [{"name": "amount", "format": "#,##0.00", "total": "sum"}]
    said = bench.run(WRITE, {"output": "o/s.xlsx", "sheets": [{"name": "Sales/1", "csv": "s.csv", "columns": columns}]})
    assert said == {"written": "o/s.xlsx", "sheets": [{"name": "Sales-1", "rows": 2, "columns": 4}]}
    sheet = load_workbook(bench.folder / "o/s.xlsx")["Sales-1"]
    assert (sheet["B2"].value, sheet["C2"].value, sheet["C2"].number_format) == ("007", 1200.5, "#,##0.00")
    assert (sheet["D2"].data_type, sheet["C4"].value, sheet.freeze_panes) == ("s", "=SUM(C2:C3)", "A2")
    said = bench.run(READ, {"path": "o/s.xlsx", "sheet": "Sales-1"})
    assert said["cells"][:2] == [["day", "code", "amount", "note"], ["2024-01-31", "007", 1200.5, "=1+1"]]
    assert "C4" in said["beware"][0]


def test_sheets_and_ranges_are_told(bench: Bench) -> None:
    flawed(bench.folder / "f.xlsx")
    plan, hidden = bench.run(READ, {"path": "f.xlsx"})["sheets"]
    assert (plan["name"], plan["formulas"], plan["first_row"]) == ("Plan", 8, ["n", "twice", None])
    assert hidden["state"] == "hidden"
    said = bench.run(READ, {"path": "f.xlsx", "sheet": 1, "range": "A2:B3", "formulas": True})
    assert said["cells"] == [[2, "=A2*2"], [3, "=A3*2"]]
    assert "there are Plan, Hidden" in bench.refused(READ, {"path": "f.xlsx", "sheet": "Pln"})


def test_what_is_wrong_is_found(bench: Bench) -> None:
    flawed(bench.folder / "f.xlsx")
    said = bench.run(CHECK, {"path": "f.xlsx", "sheet": "Plan"})
    found = {one["problem"]: one["cells"] for one in said["found"]}
    assert not said["sound"]
    assert found["formula unlike its neighbours"] == ["Plan!B6 =A6*3"]
    assert found["typed number among formulas"] == ["Plan!B5 5"]
    assert found["number stored as text (sums leave it out)"] == ["Plan!A8 '7'"]
    assert found["formula refers to cells that are gone"] == ["Plan!B9 =#REF!*2"]
    assert found["formula refers to another workbook"] == ["Plan!C2 =[other.xlsx]Sheet1!A1"]
    assert len(found["formula without a computed value (recalculate and save)"]) == 8


def test_cells_are_changed_in_a_new_file_only(bench: Bench) -> None:
    flawed(bench.folder / "f.xlsx")
    before = (bench.folder / "f.xlsx").read_bytes()
    said = bench.run(WRITE, {"path": "f.xlsx", "output": "g.xlsx", "set": {"Plan!B5": "=A5*2", "Plan!A8": 8}})
    assert said["was"] == {"Plan!B5": "5", "Plan!A8": "7"}
    sheet = load_workbook(bench.folder / "g.xlsx")["Plan"]
    assert (sheet["B5"].value, sheet["A8"].value) == ("=A5*2", 8)
    assert (bench.folder / "f.xlsx").read_bytes() == before


def test_what_is_no_workbook_is_refused(bench: Bench) -> None:
    bench.write("x.xlsx", "a,b")
    assert "cannot be read as a workbook" in bench.refused(CHECK, {"path": "x.xlsx"})
    assert 'either "sheets"' in bench.refused(WRITE, {"output": "y.xlsx"})
