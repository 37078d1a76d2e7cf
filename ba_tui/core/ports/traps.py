"""The kinds of traps in data and queries, by the names that settings and findings have for them; the gravest
of data, and of queries, first."""

from __future__ import annotations

KINDS: dict[str, str] = {
    "total_rows": "totals among detail rows",
    "header_footer_inside": "headings or notes as rows",
    "shifted_columns": "values in the wrong column",
    "sentinels": "placeholders for missing values",
    "mixed_units": "several units in one column",
    "mixed_currency": "several currencies in one column",
    "mixed_decimals": "decimal comma and point in one column",
    "ambiguous_dates": "unclear order of day and month",
    "mixed_timezones": "several time zones in one column",
    "text_numbers": "numbers stored as text",
    "leading_zeros": "codes with leading zeros",
    "duplicate_keys": "repeated keys",
    "time_gaps": "missing periods",
    "time_doublings": "periods that come twice",
    "partial_period": "an incomplete period",
    "join_multiplies": "a join that repeats rows",
    "join_loses_rows": "a join that drops rows",
    "null_not_in": "NULL in NOT IN",
    "average_of_averages": "an average of averages",
    "count_column": "COUNT that skips NULL",
    "integer_division": "integer division",
    "top_without_order": "LIMIT without ORDER BY",
    "left_join_filter": "a filter that undoes a left join",
    "partial_comparison": "a partial period compared with a whole one",
    "null_base": "a base without NULLs",
    "float_sums": "floats summed as money",
    "key_variants": "one key written in several ways",
    "missing_values": "many missing values",
    "duplicate_rows": "rows that come twice",
    "outliers": "values far from all others",
    "broken_references": "keys without their row",
}
ALL = "all"
"""Stands for every kind in a setting."""
