"""What is said of data files, broken ones included."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from ba_tui.context.profiles import LOOK, dataset_kind, profile


def written(folder: Path, name: str, content: bytes | str) -> str:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return profile(path)


def test_columns_have_types_gaps_and_examples(tmp_path: Path):
    text = "id;name;when;share;ok\n1;Zoë;2024-01-02;0.5;yes\n2;;2024-01-03 10:00;1e3;no\n\n"
    assert written(tmp_path, "a.csv", f"\ufeff{text}").split("\n") == [
        "2 rows, 5 columns, separated by ';'.",
        "- id: integer, such as 1, 2",
        "- name: text, 1 of 2 empty, such as Zoë",
        "- when: date, such as 2024-01-02, 2024-01-03 10:00",
        "- share: number, such as 0.5, 1e3",
        "- ok: boolean, such as yes, no",
        "The first rows:",
        "id;name;when;share;ok",
        "1;Zoë;2024-01-02;0.5;yes",
        "2;;2024-01-03 10:00;1e3;no",
    ]


def test_a_large_table_is_counted_and_only_its_start_is_looked_at(tmp_path: Path):
    rows = LOOK // 6
    about = written(tmp_path, "a.tsv", "a\tb\n" + "1\tword\n" * rows)
    assert about.startswith(f"about {rows:,} rows, 2 columns")
    assert len(about) < 500


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.json", json.dumps([{"x": 1}, {"y": [2]}]), "A list of 2 items. Keys of its items: x, y."),
        ("a.json", '{"k": 1}', "An object with 1 key: k."),
        ("a.json", "[" * 100_000, "It begins: [[["),
        ("a.jsonl", '{"x": 1}\nnot json\n{"y": 2}\n', "2 rows. Keys of its items: x, y."),
        ("a.csv", "", "It is empty."),
        ("a.csv", b"\xff\xfe\x00x", "0 rows"),
        ("a.xlsx", b"PK\x03\x04broken", ""),
        ("a.sqlite", b"no database", ""),
        ("a.sqlite", b"SQLite format 3\0broken", ""),
        ("a.parquet", b"PAR1", ""),
    ],
)
def test_other_kinds_and_broken_files(tmp_path: Path, name: str, content: bytes | str, expected: str):
    assert written(tmp_path, name, content).startswith(expected)


def test_a_database_names_its_tables_and_is_left_as_it_was(tmp_path: Path):
    path = tmp_path / "a?b #1.db"
    base = sqlite3.connect(path)
    base.execute("create table orders (id integer, total real)")
    base.commit()
    base.close()
    assert profile(path) == "1 table.\n- orders: CREATE TABLE orders (id integer, total real)"
    assert [each.name for each in tmp_path.iterdir()] == ["a?b #1.db"]


def test_kinds_go_by_the_ending():
    assert [dataset_kind(name) for name in ("x.CSV", "csv", "a/b.tar.gz", ".json")] == ["CSV data", "", "", "JSON data"]
