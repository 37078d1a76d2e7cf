"""Figures that are computed otherwise than agreed are found, and those that only look otherwise are not."""

from __future__ import annotations

import pytest

from ba_tui.features.data.analysis.metric_queries import differences, sql_trouble
from ba_tui.features.data.analysis.metrics import Metric

METRICS = (
    Metric("revenue", "sum(amount * price) FILTER (WHERE status = 'paid' AND NOT test)", "orders", (), "EUR", "Ann",
           ("turnover",), shown="revenue.yaml"),
    Metric("orders", "count(*)", "orders"),
)  # fmt: skip


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(o.price * o.amount) FILTER (WHERE NOT o.test AND o.status = 'paid') AS revenue FROM orders o",
        "SELECT region, round(sum(amount * price), 2) AS Revenue FROM orders "
        "WHERE status = 'paid' AND NOT test AND region = 'N' GROUP BY 1",
        "SELECT sum(CASE WHEN status = 'paid' AND NOT test THEN amount * price ELSE 0 END) AS revenue_eur FROM orders",
        "WITH t AS (SELECT amount * price AS line FROM orders WHERE status = 'paid' AND NOT test) "
        "SELECT sum(line) AS revenue FROM t",
        "WITH m AS (SELECT month, sum(amount * price) FILTER (WHERE status = 'paid' AND NOT test) AS revenue "
        "FROM orders GROUP BY 1) SELECT sum(revenue) AS revenue FROM m",
        "SELECT revenue FROM R1",
        "SELECT r.revenue AS revenue FROM R1 AS r",
        "SELECT amount * price AS revenue FROM orders",
        "SELECT count(1) AS orders FROM orders",
        "SELECT sum(x) AS other_revenue_like FROM orders",
        "no sql for revenue ((",
        "revenue " * 10_000,
    ],
)
def test_the_same_figure_in_other_words_is_none(sql: str) -> None:
    assert differences(sql, METRICS) == ()


@pytest.mark.parametrize(
    ("sql", "proof"),
    [
        (
            "SELECT region, sum(amount) AS turnover FROM orders GROUP BY region ORDER BY 2 DESC LIMIT 3",
            "SELECT region, SUM(amount) AS \"revenue here\", SUM(amount * price) FILTER(WHERE status = 'paid' AND NOT "
            'test) AS "revenue agreed" FROM orders GROUP BY region',
        ),
        ("SELECT avg(amount * price) FILTER (status = 'paid' AND NOT test) AS revenue FROM orders", None),
        (
            "SELECT sum(amount * price) FILTER (status = 'paid' AND NOT test AND region = 'N') AS revenue FROM orders",
            None,
        ),
        ("SELECT sum(amount * price) AS total_revenue FROM orders WHERE status = 'paid'", None),
        ("SELECT * FROM (SELECT sum(amount * price * 1.1) AS revenue FROM orders)", None),
        (
            "WITH t AS (SELECT amount * 2 AS line FROM orders) SELECT sum(line) AS revenue FROM t",
            "SELECT sum(amount * price) FILTER (WHERE status = 'paid' AND NOT test) AS \"revenue\" FROM orders",
        ),
        ("SELECT count(DISTINCT id) AS orders FROM orders", None),
        ("SELECT count(id) AS orders FROM orders", None),
    ],
)
def test_another_figure_under_the_name_is_told(sql: str, proof: str | None) -> None:
    (found,) = differences(sql, METRICS)
    assert found.title.endswith("is not computed as agreed")
    assert found.why.startswith("The query computes it as ")
    assert found.proof
    assert proof is None or found.proof == proof


def test_sql_that_is_no_aggregate_is_told() -> None:
    assert sql_trouble(METRICS[0]) == ""
    assert sql_trouble(Metric("a", "amount * 2", shown="a.yaml")) == (
        "a.yaml: a is not an aggregate, such as sum(amount)"
    )
    for sql in ("sum(x), 2", "sum(x", "sum(x)) FROM secret --"):
        assert "is not one expression" in sql_trouble(Metric("a", sql, shown="a.yaml"))
