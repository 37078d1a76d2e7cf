"""The card of a dataset: bounded, nothing of the rows beyond the sample, personal columns masked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ba_tui.core.ports.tables import Column, DatasetProfile
from ba_tui.features.data.analysis.card import card, personal_kind
from tests.analysis.engines import engine_in

PEOPLE = "id,mail,region,price\n" + "".join(
    f'{n},person{n}@example.org,{"North" if n % 3 else "South"},"{n},50 €"\n' for n in range(1, 40)
)


@pytest.fixture
async def people(tmp_path: Path) -> DatasetProfile:
    (tmp_path / "people.csv").write_text(PEOPLE + "40,x\n")
    engine = engine_in(tmp_path)
    try:
        await engine.register("people.csv")
        return await engine.profile("people")
    finally:
        await engine.close()


async def test_the_card_tells_what_a_query_needs(people: DatasetProfile) -> None:
    assert card(people).splitlines() == [
        "Table people: people.csv, 39 rows, 4 columns",
        "1 bad row left out: line 41 (too few columns)",
        "Careful: 1 line with too many or too few fields left out of people.",
        "- id BIGINT; probably a key; 1 to 39; quartiles 10, 20, 30; such as 1, 2, 3",
        "- mail VARCHAR; probably a key; such as ‹mail›",
        "- region VARCHAR; 2 distinct; most often North (26), South (13); such as North, South",
        "- price DECIMAL(18,2); from currency €, decimal comma; 39 distinct; 1.50 to 39.50; "
        "quartiles 10.50, 20.50, 30.50; such as 1.50, 2.50, 3.50",
    ]
    assert "person1@example.org" in card(people, unmasked=["Mail"])


async def test_what_is_shared_is_a_setting(people: DatasetProfile) -> None:
    schema, aggregates = card(people, "schema"), card(people, "aggregates")
    assert "- region VARCHAR" in schema.splitlines()
    assert "mail VARCHAR; probably a key; looks personal" in schema
    assert "such as" not in aggregates
    assert "most often North (26)" in aggregates
    assert "person" not in schema.replace("people", "").replace("personal", "") + aggregates


async def test_the_card_is_bounded(people: DatasetProfile) -> None:
    wide = replace(people, columns=people.columns * 500)
    assert len(card(wide, most=2_000)) <= 2_000
    assert card(wide, most=2_000).endswith("more columns: DESCRIBE people lists all")


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("contact", ["a@b.org", "c.d@e.co.uk"], "mail"),
        ("konto", ["DE89370400440532013000", "GB82 WEST 1234 5698 7654 32"], "iban"),
        ("x", ["DE00370400440532013000"], ""),
        ("x", ["+49 30 1234567", "0171 2345678"], "phone"),
        ("last_name", ["Okafor"], "name"),
        ("customer", ["Ada Lovelace", "Alan Turing"], "name"),
        ("customer", ["c1", "c2"], ""),
        ("product_name", ["Blue Chair"], ""),
        ("order_date", ["2024-01-01"], ""),
    ],
)
def test_personal_columns_are_recognized(name: str, values: list[str], kind: str) -> None:
    assert personal_kind(Column(name, "VARCHAR"), values) == kind
