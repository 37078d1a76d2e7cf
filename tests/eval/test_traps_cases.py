"""The labelled cases load, cover all kinds of trap, and their queries run and have the effect they are there for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import pytest

from tests.eval.traps.cases import FOLDER, HOLDOUT, IN_DATA, IN_QUERIES, KINDS, Case, CaseError, load

README = FOLDER.parent / "README.md"
LARGEST = 1_500_000
CASES = load()
FORMS = {case.id for case in load(FOLDER / "forms.yaml")}
"""Short cases that only vary the form of others; they need no explanation."""


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def add_tables(connection: duckdb.DuckDBPyConnection, case: Case, folder: Path) -> None:
    for path in case.write(folder):
        if path.suffix in {".csv", ".tsv"}:
            types = ", ".join(f"'{name}': '{kind}'" for name, kind in case.types.get(path.stem, {}).items())
            source = f"read_csv('{path}'{f', types = {{{types}}}' if types else ''})"
        else:
            source = f"read_json('{path}')"
        connection.execute(f'CREATE TABLE "{path.stem}" AS FROM {source}')


def rows(connection: duckdb.DuckDBPyConnection, query: str) -> Sequence[tuple[object, ...]]:
    return connection.execute(query).fetchall()


def test_there_are_enough_clean_and_trapped_cases() -> None:
    counted = Counter((case.holdout, case.clean) for case in CASES)
    assert counted[False, True] >= 100
    assert counted[False, False] >= 100
    assert counted[True, True] >= 20
    assert counted[True, False] >= 20


def test_every_kind_is_expected_several_times() -> None:
    shown = Counter(kind for case in CASES if not case.holdout for kind in case.kinds)
    held_back = Counter(kind for case in CASES if case.holdout for kind in case.kinds)
    assert {kind: shown[kind] for kind in KINDS if shown[kind] < 4} == {}
    assert set(held_back) == set(KINDS)


def test_every_case_says_why_and_from_where() -> None:
    assert [case.id for case in CASES if case.id not in FORMS and not (case.why.endswith(".") and case.source)] == []


def test_only_the_holdout_is_marked_so() -> None:
    assert {case.id for case in CASES if case.holdout} == {case.id for case in load(HOLDOUT)}


def test_cases_with_traps_of_queries_have_a_query_and_its_repair() -> None:
    explained = [case for case in CASES if case.id not in FORMS]
    assert [case.id for case in explained if case.kinds & IN_QUERIES.keys() and not (case.sql and case.mended)] == []


def test_the_data_stay_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < LARGEST


def test_the_page_lists_every_kind() -> None:
    page = README.read_text("utf-8")
    assert [kind for kind, words in (IN_DATA | IN_QUERIES).items() if f"- `{kind}`: {words}" not in page] == []


@pytest.mark.parametrize("case", [case for case in CASES if case.sql], ids=lambda case: case.id)
def test_query_runs_and_its_repair_changes_the_result(
    case: Case, tmp_path: Path, engine: duckdb.DuckDBPyConnection
) -> None:
    engine.begin()
    try:
        add_tables(engine, case, tmp_path)
        result = rows(engine, case.sql)
        if case.mended:
            assert rows(engine, case.mended) != result
    finally:
        engine.rollback()


def test_json_lines_of_others_are_read(tmp_path: Path) -> None:
    mine = tmp_path / "other.jsonl"
    lines = [
        {"id": "a", "files": {"t.csv": "x\n1\n"}, "expected": []},
        {"id": "b", "files": {"t.csv": "x\n1\n"}, "expected": ["sentinels"], "author": "somebody"},
        {"id": "c", "files": {"u.json": '[{"x": "1"}]'}, "sql": "FROM u", "expected": [{"trap": "text_numbers"}]},
    ]
    mine.write_text("\n".join(json.dumps(line) for line in lines) + "\n\n", "utf-8")
    assert [(case.id, case.clean, sorted(case.kinds), case.tables) for case in load(mine)] == [
        ("a", True, [], ("t",)),
        ("b", False, ["sentinels"], ("t",)),
        ("c", False, ["text_numbers"], ("u",)),
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"expected": [{"trap": "moon_phase"}]}, "unknown trap 'moon_phase'"),
        ({"expected": [{"trap": "sentinels", "dataset": "u"}]}, "dataset 'u' is not one of its files"),
        ({"expected": [{"trap": "sentinels", "part": "JOIN"}]}, "part 'JOIN' is not in its query"),
        ({"expected": ["sentinels"], "tolerated": ["sentinels"]}, "both expected and tolerated"),
        ({"tolerated": ["sentinels"]}, "tolerates traps although it is clean"),
        ({"types": {"u": {"x": "INTEGER"}}}, "unknown tables"),
        ({"mended": "SELECT 1"}, "a mended query but no query"),
        ({"files": {}}, "has no files"),
        ({"files": {"../t.csv": "x\n"}}, "must be a bare name"),
        ({"files": {"t.xlsx": "x\n"}}, "must be a bare name"),
        ({"files": {"t.csv": "x\n", "t.json": "[]"}}, "same table name"),
        ({"files": {"t.csv": {"path": "absent.csv"}}}, "absent.csv"),
        ({"files": 5}, "case a"),
        ({"expected": None}, "case a"),
        ({"today": "yesterday"}, "today"),
    ],
)
def test_a_broken_case_is_named_with_its_fault(change: dict[str, object], words: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text(json.dumps({"id": "a", "files": {"t.csv": "x\n1\n"}, "expected": []} | change), "utf-8")
    with pytest.raises(CaseError, match=r"broken\.jsonl: case a: ") as error:
        load(path)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("x.yaml", "- {id: a", "not a YAML list of cases"),
        ("x.yaml", "5", "not a YAML list of cases"),
        ("x.yaml", "- just text", "a case must be an object"),
        ("x.jsonl", "[1, 2]", "a case must be an object"),
    ],
)
def test_a_file_without_cases_is_an_error(name: str, text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    with pytest.raises(CaseError, match=words):
        load(path)


def test_an_id_used_twice_and_a_line_that_is_not_json_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    line = json.dumps({"id": "a", "files": {"t.csv": "x\n1\n"}, "expected": []})
    path.write_text(f"{line}\n{line}\n", "utf-8")
    with pytest.raises(CaseError, match="already used"):
        load(path)
    path.write_text(f"{line}\n{{'id'}}\n", "utf-8")
    with pytest.raises(CaseError, match="line 2 is not JSON"):
        load(path)
