"""Agreed definitions in SQL: ``metric('revenue')`` becomes the aggregate, behind FROM or JOIN a table of groups."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import nearest, one_line
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.errors import QueryFailed
from ba_tui.features.data.analysis.metrics.definitions import Metric, Metrics

CALL = "metric"
LONGEST = 200_000
"""Characters of SQL that are looked at, as many as the engine takes."""
OFFER_CHARS = 1_200
"""About 300 tokens."""
_CALLED = regex(r"(?i)\bmetric\s*\(")


@frozen
class ExpandedQuery:
    """``sql`` with definitions in the place of their names; ``used`` are those."""

    sql: str
    used: tuple[Metric, ...] = ()


async def expanded_query(sql: str, metrics: Metrics) -> ExpandedQuery:
    """Return ``sql`` with every ``metric('NAME')`` replaced.

    Raises:
        QueryFailed: there is no such metric, it can't be used, or not so.
    """
    if len(sql) > LONGEST or not _CALLED.search(sql):
        return ExpandedQuery(sql)
    return await asyncio.to_thread(expanded, sql, metrics)


def expanded(sql: str, metrics: Metrics) -> ExpandedQuery:
    """``expanded_query``, blocking."""
    parts: list[str] = []
    used: dict[str, Metric] = {}
    done = 0
    for call in _calls(sql):
        metric = _usable(call.names[0], metrics)
        used[metric.name] = metric
        text = as_table(metric, call.names[1:]) if call.table else _as_value(metric, call.names[1:])
        parts += [sql[done : call.start], text]
        done = call.end
    return ExpandedQuery("".join([*parts, sql[done:]]), tuple(used.values()))


def as_table(metric: Metric, columns: Sequence[str]) -> str:
    """A query in brackets that groups ``metric`` by ``columns``, all of its grain by default. Raises QueryFailed."""
    if not metric.source:
        hint = f"Write metric('{metric.name}') into the SELECT of a query on its table, or add from to {metric.shown}."
        raise QueryFailed(f"{metric.name} names no table, so it can't be one.", hint)
    grain = {name.lower(): (name, sql) for name, sql in metric.grain}
    groups: list[tuple[str, str]] = list(metric.grain) if not columns else []
    for column in columns:
        if grain and column.lower() not in grain:
            known = ", ".join(name for name, _ in metric.grain)
            raise QueryFailed(f"{metric.name} is not agreed by {one_line(column, 60)}.", f"It is by {known}.")
        groups.append(grain.get(column.lower(), (column, _quoted(column))))
    listed = [f"{sql} AS {_quoted(name)}" for name, sql in groups]
    value = f"{_in_brackets(metric.sql)} AS {_quoted(metric.name)}"
    return f"(SELECT {', '.join([*listed, value])} FROM {metric.source}{' GROUP BY ALL' if groups else ''})"


def offer(metrics: Sequence[Metric]) -> str:
    """What a model is told of the definitions, bounded; empty for none."""
    if not metrics:
        return ""
    text = "Agreed definitions: write metric('NAME') as the value in a SELECT, or FROM metric('NAME', 'COLUMN') "
    text += "for a table of groups; do not compute these figures otherwise: "
    lines: list[str] = []
    for metric in metrics:
        also = f" (also {', '.join(metric.synonyms[:3])})" if metric.synonyms else ""
        lines.append(one_line(f"{metric.line}{also}", 150))
        if len(text) + sum(len(line) + 2 for line in lines) > OFFER_CHARS:
            lines[-1] = f"and {len(metrics) - len(lines) + 1} more"
            break
    return f"{text}{'; '.join(lines)}.\n"


def described(metric: Metric) -> str:
    """All of a definition, for a model and for people."""
    about = {
        "description": metric.description,
        "sql": metric.sql,
        "from": metric.source,
        "grain": ", ".join(name for name, _ in metric.grain),
        "unit": metric.unit,
        "owner": metric.owner,
        "synonyms": ", ".join(metric.synonyms),
    }
    lines = [f"{name}: {value}" for name, value in about.items() if value]
    use = f"SELECT … metric('{metric.name}') …" + (f" or FROM metric('{metric.name}')" if metric.source else "")
    return "\n".join([f"Agreed definition {metric.name} ({metric.shown})", *lines, f"use: {use}"])


@frozen
class _Call:
    """``metric(…)`` from ``start`` to ``end`` with the texts in its brackets; ``table``: it stands behind FROM."""

    start: int
    end: int
    names: tuple[str, ...]
    table: bool


def _calls(sql: str) -> Iterator[_Call]:
    from sqlglot.errors import SqlglotError  # noqa: PLC0415 - its parser is large
    from sqlglot.tokenizer_core import TokenType  # noqa: PLC0415

    try:
        tokens = _tokens(sql)
    except SqlglotError as error:
        raise QueryFailed("This is not valid SQL: a quote or comment is not closed.") from error
    for place, token in enumerate(tokens):
        if token.text.lower() != CALL or token.token_type == TokenType.STRING:
            continue
        if place + 1 >= len(tokens) or tokens[place + 1].token_type != TokenType.L_PAREN:
            continue
        names: list[str] = []
        at = place + 2
        while at < len(tokens) and tokens[at].token_type == TokenType.STRING:
            names.append(tokens[at].text)
            at += 1
            if at < len(tokens) and tokens[at].token_type == TokenType.COMMA:
                at += 1
        if not names or at >= len(tokens) or tokens[at].token_type != TokenType.R_PAREN:
            raise QueryFailed("metric() takes names in single quotes.", "Such as metric('revenue').")
        before = tokens[place - 1].token_type if place else None
        table = before in {TokenType.FROM, TokenType.JOIN}
        yield _Call(token.start, tokens[at].end + 1, tuple(names), table)


def _tokens(sql: str) -> Sequence[Any]:
    from sqlglot.dialects.duckdb import DuckDB  # noqa: PLC0415 - see _calls

    return DuckDB().tokenize(sql)


def _usable(name: str, metrics: Metrics) -> Metric:
    metric = metrics.find(name)
    if metric is None:
        known: Mapping[str, str] = {
            each.lower(): each for one in metrics.usable() for each in (one.name, *one.synonyms)
        }
        close = nearest(name.lower(), known)
        hint = f"Did you mean {known[close]}?" if close else "ba data metrics lists the agreed definitions."
        raise QueryFailed(f"There is no metric {one_line(name, 60)}.", hint)
    if metric.trouble:
        raise QueryFailed(f"The metric {metric.name} can't be used: {metric.trouble}.", "Correct its file.")
    return metric


def _as_value(metric: Metric, columns: Sequence[str]) -> str:
    if columns:
        hint = f"Write FROM metric('{metric.name}', '{columns[0]}'), or group the query by the column."
        raise QueryFailed("In a SELECT, metric() takes the name alone.", hint)
    return _in_brackets(metric.sql)


def _in_brackets(sql: str) -> str:
    # A comment at its end must not hide the bracket.
    return f"({sql}\n)" if "--" in sql else f"({sql})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
