"""The boxes of a box plot: quartiles, whiskers and outliers of each group."""

from __future__ import annotations

from ba_tui.core.displays.charts import Box, Chart
from ba_tui.features.data.analysis.engine_process.chart_values import ChartTable

MOST_BOXES = 20


def boxes(table: ChartTable) -> Chart:
    """A box for each value of x, the largest groups; one box for all rows without x."""
    request = table.request
    limit = request.limit or MOST_BOXES
    value = table.number(request.y[0])
    label = table.label(request.x) if request.x else f"'{request.y[0].replace(chr(39), chr(39) * 2)}'"
    wanted = " AND v > 0" if request.log else ""
    inner = (
        f"(SELECT {label} AS k, {value} AS v FROM {table.source} WHERE {value} IS NOT NULL{wanted.replace('v', value)})"
    )
    query = f"""
        WITH quartiles AS (
            SELECT k, count(*) AS n, quantile_cont(v, 0.25) AS q1, median(v) AS q2, quantile_cont(v, 0.75) AS q3
            FROM {inner} GROUP BY k ORDER BY n DESC, k LIMIT {limit}
        )
        SELECT k, min(v) FILTER (v >= q1 - 1.5 * (q3 - q1)), any_value(q1), any_value(q2), any_value(q3),
            max(v) FILTER (v <= q3 + 1.5 * (q3 - q1)), any_value(n),
            count(*) FILTER (v < q1 - 1.5 * (q3 - q1) OR v > q3 + 1.5 * (q3 - q1))
        FROM {inner} JOIN quartiles USING (k) GROUP BY k ORDER BY any_value(q2) DESC, k"""
    found = tuple(Box(*row) for row in table.all(query))
    notes = list(table.lacking([request.y[0]]))
    groups = table.one(f"SELECT count(DISTINCT k) FROM {inner}")[0]
    if groups > len(found):
        notes.append(f"{len(found):,} of {groups:,} values of {request.x} are shown: those with the most rows.")
    if any(each.outliers for each in found):
        notes.append("Outliers lie beyond 1.5 times the distance of the quartiles; they are counted, not drawn.")
    return Chart(request, "category", request.x, request.y[0], boxes=found, notes=tuple(notes))
