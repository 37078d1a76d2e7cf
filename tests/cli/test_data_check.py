"""``ba data check``: what it prints, and how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.program import Program

ORDERS = "order_id,customer_id,amount\n1,10,5\n2,11,7\n3,10,6\n4,99,8\n5,12,900\n6,11,5\n7,12,\n8,10,6\n8,10,6\n"
CUSTOMERS = "customer_id,name\n10,A\n11,B\n12,C\n"


@pytest.fixture
def ba(tmp_path: Path) -> Program:
    folder, home = tmp_path / "work", tmp_path / "home"
    for made in (folder, home):
        made.mkdir()
    (folder / "orders.csv").write_text(ORDERS)
    (folder / "customers.csv").write_text(CUSTOMERS)
    return Program(folder, home, {})


def test_findings_end_with_their_own_code(ba: Program) -> None:
    done = ba.here("data", "check", "orders.csv", "customers.csv")
    assert done.returncode == 6
    found = {line.split(":")[0].strip() for line in done.stdout.splitlines() if line.startswith("  ") and ": " in line}
    assert found >= {"duplicate_keys", "missing_values", "duplicate_rows", "outliers", "broken_references"}
    assert "customers: 3 rows, nothing was found" in done.stdout


def test_clean_files_and_muted_kinds_end_with_0(ba: Program) -> None:
    assert ba.json("data", "check", "customers.csv", "--json") == []
    done = ba.here("data", "check", "customers.csv", "orders.csv", "--mute", "all")
    assert (done.returncode, done.stdout.count("nothing was found")) == (0, 2)
    wrong = ba.here("data", "check", "customers.csv", "--mute", "nonsense")
    assert wrong.returncode == 1
    assert "There is no kind nonsense." in wrong.stderr


def test_a_query_warns_on_stderr(ba: Program) -> None:
    sql = "SELECT sum(amount) AS s FROM orders JOIN customers USING (customer_id)"
    done = ba.here("data", "query", sql, "orders.csv", "customers.csv", "-f", "csv")
    assert done.stdout == "s\n935\n"
    assert "careful: The inner join drops 1 of 9 rows of orders" in done.stderr
