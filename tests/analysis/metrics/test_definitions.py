"""Files of agreed definitions: what counts, and one clear line for what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.features.data.analysis.errors import QueryFailed
from ba_tui.features.data.analysis.metric_queries import described, expanded, offer
from ba_tui.features.data.analysis.metrics import MetricFolder, Metrics

REVENUE = """\
sql: sum(amount) FILTER (WHERE status = 'paid')
from: orders
grain: {month: "date_trunc('month', day)", region: region}
unit: EUR
owner: finance@example.com
synonyms: [turnover, Net sales]
"""
PAID = "sum(amount) FILTER (WHERE status = 'paid')"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "revenue.yaml").write_text(REVENUE)
    return tmp_path


def metrics_in(folder: Path) -> Metrics:
    return Metrics([MetricFolder(folder, "project", ".ba/metrics")])


@pytest.mark.parametrize(
    ("name", "content", "trouble"),
    [
        ("a.yaml", "sql: [\n", ".ba/metrics/a.yaml, line 2: is not valid YAML"),
        ("a.yaml", "- sql: count(*)\n", "expected lines of `name: value`, got a list"),
        ("a.yaml", "sqll: count(*)\n", "a.yaml: sqll is not a field of a metric; did you mean 'sql'?"),
        ("a.yaml", "unit: EUR\n", "a has no sql. Write an aggregate, such as sum(amount)"),
        ("a.yaml", "sql: SELECT 1\n", "sql is a whole query. Write its aggregate as sql and its tables as from"),
        ("a.yaml", "sql: count(*); DROP TABLE x\n", "its SQL has a semicolon"),
        ("a.yaml", "sql: {a: 1}\n", "a has no sql"),
        ("my orders.yaml", "sql: count(*)\n", "'my orders' can't be a name"),
        ("R1.yaml", "sql: count(*)\n", "'R1' can't be a name"),
        ("a.yaml", "metrics: [5]\n", "expected `name: …` and `sql: …`"),
        ("a.yaml", "x" * 1_000_001, "is larger than"),
    ],
)
def test_a_file_that_is_wrong_is_one_line(tmp_path: Path, name: str, content: str, trouble: str) -> None:
    (tmp_path / name).write_text(content)
    (metric,) = metrics_in(tmp_path).look()
    assert trouble in metric.trouble
    assert "\n" not in metric.trouble


def test_two_definitions_of_one_name_are_used_by_none(folder: Path) -> None:
    (folder / "more.yml").write_text("metrics:\n- {name: turnover, sql: sum(gross)}\n- {name: orders, sql: count(*)}\n")
    metrics = metrics_in(folder)
    told = "turnover is defined twice, in .ba/metrics/more.yml and .ba/metrics/revenue.yaml. Remove or rename one"
    assert {metric.name: metric.trouble for metric in metrics.look()} == {
        "orders": "",
        "revenue": told.replace("more.yml and .ba/metrics/revenue.yaml", "revenue.yaml and .ba/metrics/more.yml"),
        "turnover": told.replace("more.yml and .ba/metrics/revenue.yaml", "revenue.yaml and .ba/metrics/more.yml"),
    }
    with pytest.raises(QueryFailed, match="turnover is defined twice"):
        expanded("SELECT metric('Turnover') FROM orders", metrics)


def test_a_folder_that_is_not_trusted_has_none(folder: Path) -> None:
    trusted = False
    metrics = Metrics([MetricFolder(folder, "project", ".ba/metrics", lambda: trusted)])
    assert metrics.look() == ()
    trusted = True
    assert [metric.name for metric in metrics.look()] == ["revenue"]


def test_a_changed_file_is_read_again(folder: Path) -> None:
    metrics = metrics_in(folder)
    assert metrics.usable()
    (folder / "revenue.yaml").write_text("sql: sum(net)\n")
    assert metrics.usable()[0].sql == "sum(net)"
    (folder / "revenue.yaml").unlink()
    assert metrics.look() == ()


@pytest.mark.parametrize(
    ("sql", "made"),
    [
        ("SELECT region, metric('revenue') AS r FROM orders", f"SELECT region, ({PAID}) AS r FROM orders"),
        ("SELECT METRIC ( 'Net Sales' ) FROM orders", f"SELECT ({PAID}) FROM orders"),
        ("SELECT 'metric(''x'')' -- metric('y')\n", "SELECT 'metric(''x'')' -- metric('y')\n"),
        (
            "FROM metric('revenue', 'region') ORDER BY 2",
            f'FROM (SELECT region AS "region", ({PAID}) AS "revenue" FROM orders GROUP BY ALL) ORDER BY 2',
        ),
        (
            "FROM a JOIN metric('revenue') AS m USING (region)",
            f'FROM a JOIN (SELECT date_trunc(\'month\', day) AS "month", region AS "region", ({PAID}) '
            'AS "revenue" FROM orders GROUP BY ALL) AS m USING (region)',
        ),
        ("SELECT metric FROM t", "SELECT metric FROM t"),
    ],
)
def test_a_query_names_a_definition(folder: Path, sql: str, made: str) -> None:
    assert expanded(sql, metrics_in(folder)).sql == made


@pytest.mark.parametrize(
    ("sql", "said", "hint"),
    [
        ("SELECT metric('revenu')", "There is no metric revenu.", "Did you mean revenue?"),
        ("SELECT metric('x')", "There is no metric x.", "ba data metrics lists the agreed definitions."),
        ("SELECT metric(x)", "metric() takes names in single quotes.", "Such as metric('revenue')."),
        ("SELECT metric('revenue", "This is not valid SQL: a quote or comment is not closed.", ""),
        ("FROM metric('revenue', 'channel')", "revenue is not agreed by channel.", "It is by month, region."),
        (
            "SELECT metric('revenue', 'region')",
            "In a SELECT, metric() takes the name alone.",
            "Write FROM metric('revenue', 'region'), or group the query by the column.",
        ),
    ],
)
def test_a_wrong_use_is_one_line(folder: Path, sql: str, said: str, hint: str) -> None:
    with pytest.raises(QueryFailed) as caught:
        expanded(sql, metrics_in(folder))
    assert (str(caught.value), caught.value.hint) == (said, hint)


def test_what_a_model_reads_of_them_is_short(folder: Path) -> None:
    metrics = metrics_in(folder)
    assert "revenue in EUR by month, region (also turnover, Net sales)." in offer(metrics.usable())
    assert "owner: finance@example.com" in described(metrics.usable()[0])
    entries = "".join(f"- {{name: figure_{number}, sql: count(*)}}\n" for number in range(400))
    (folder / "many.yaml").write_text(f"metrics:\n{entries}")
    text = offer(metrics.usable())
    assert len(text) < 1_300
    assert text.rstrip().endswith("more.")
