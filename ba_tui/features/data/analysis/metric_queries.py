"""Agreed definitions in queries: detects columns that a query computes differently, and replaces ``metric('NAME')``.

Two computations are equal when their parse trees are, after removing what does not change the figure: table names,
case, brackets, the order of sums and conditions, rounding at the end, CASE instead of FILTER. No query is run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import nearest, one_line, quoted
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.errors import QueryFailed
from ba_tui.features.data.analysis.metrics import Metric, Metrics, folded

LONGEST = 50_000
"""Longest query that is checked, in characters."""
DEEPEST = 20
"""Most nested queries through which a column is followed."""
SHOWN = 120
Node: TypeAlias = Any
"""A node of sqlglot's tree, untyped because naming the type would load the library."""
Conditions: TypeAlias = frozenset[str]


@frozen
class MetricFinding:
    """``title`` in a few words, ``why`` in one sentence, and ``proof``, a query that shows both figures; empty when
    there is none."""

    title: str
    why: str
    proof: str = ""


def differences(sql: str, metrics: Sequence[Metric]) -> tuple[MetricFinding, ...]:
    """Return a finding for each column of ``sql`` that is named like one of ``metrics`` but computed differently.
    ``sql`` has the definitions in place of ``metric('NAME')``. Unparsable SQL gives no findings."""
    if not metrics or len(sql) > LONGEST:
        return ()
    names = {name: metric for metric in metrics for name in _names(metric)}
    if not any(metric_name.split("_")[0] in sql.casefold() for metric_name in names):
        return ()
    root = _parsed(sql)
    if root is None:
        return ()
    return tuple(dict.fromkeys(_found(root, names)))


def sql_trouble(metric: Metric) -> str:
    """Return why the SQL of ``metric`` is not an aggregate; empty when it is one."""
    from sqlglot import exp  # noqa: PLC0415 - large

    tree = _parsed(f"SELECT {metric.sql} AS x FROM {metric.source or 't'}")
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
        return f"{metric.shown}: the SQL of {metric.name} is not one expression"
    if not tree.expressions[0].find(exp.AggFunc):
        return f"{metric.shown}: {metric.name} is not an aggregate, such as sum(amount)"
    return ""


def _found(root: Node, names: Mapping[str, Metric]) -> Iterator[MetricFinding]:
    from sqlglot import exp  # noqa: PLC0415 - large

    for select in root.find_all(exp.Select):
        for projection in select.expressions:
            metric = names.get(folded(projection.alias_or_name))
            if metric is None or not isinstance(projection, exp.Alias):
                continue
            expression = _inlined(projection.this, select, DEEPEST)
            if expression.find(exp.AggFunc) and not _same(expression, select, metric):
                yield _finding(root, select, projection, metric)


def _same(expression: Node, select: Node, metric: Metric) -> bool:
    agreed = _parsed(f"SELECT {metric.sql} AS x")
    if agreed is None:
        return True
    definition, wanted = _core(agreed.expressions[0].this)
    core, filtered = _core(expression)
    where = _left_in(select, DEEPEST)
    # The query may filter rows; a filter in the aggregate itself is part of the computation.
    return core == definition and wanted <= filtered | where and filtered <= wanted


def _finding(root: Node, select: Node, projection: Node, metric: Metric) -> MetricFinding:
    shown = projection.alias_or_name
    called = f"{metric.name}" if folded(shown) == folded(metric.name) else f"{metric.name} ({shown})"
    computed = one_line(projection.this.sql(dialect="duckdb"), SHOWN)
    owner = f", owner {metric.owner}" if metric.owner else ""
    why = f"The query computes it as {computed}; agreed is {one_line(metric.sql, SHOWN)} ({metric.shown}{owner})."
    return MetricFinding(f"{called} is not computed as agreed", why, _proof(root, select, projection, metric))


def _proof(root: Node, select: Node, projection: Node, metric: Metric) -> str:
    """Return a query with both figures side by side, if the query reads tables directly."""
    from sqlglot import exp  # noqa: PLC0415 - large

    agreed = _parsed(f"SELECT {metric.sql} AS x")
    sources = [join.this for join in select.args.get("joins") or ()]
    sources += [source.this] if (source := select.args.get("from_") or select.args.get("from")) else []
    outer = {each.alias_or_name.lower() for each in root.find_all(exp.CTE)}
    plain = all(isinstance(each, exp.Table) and each.name.lower() not in outer for each in sources)
    if agreed is None or not plain or not sources:
        return f'SELECT {metric.sql} AS "{metric.name}" FROM {metric.source}' if metric.source else ""
    both = select.copy()
    for part in ("with_", "with", "order", "limit", "offset", "having", "qualify", "distinct"):
        both.set(part, None)
    groups = [each for each in both.expressions if not each.find(exp.AggFunc)]
    named = exp.alias_(projection.this.copy(), f"{metric.name} here", quoted=True)
    other = exp.alias_(agreed.expressions[0].this.copy(), f"{metric.name} agreed", quoted=True)
    both.set("expressions", [*groups, named, other])
    return both.sql(dialect="duckdb")


def _names(metric: Metric) -> Iterator[str]:
    for name in metric.names:
        yield name
        if metric.unit:
            yield f"{name}_{folded(metric.unit)}"
        yield f"total_{name}"


def _parsed(sql: str) -> Node | None:
    import logging  # noqa: PLC0415 - with the parser

    import sqlglot  # noqa: PLC0415 - large
    from sqlglot.errors import SqlglotError  # noqa: PLC0415

    log = logging.getLogger("sqlglot")
    before, log.disabled = log.disabled, True
    try:
        found = [each for each in sqlglot.parse(sql, dialect="duckdb") if each is not None]
    except (SqlglotError, RecursionError):
        return None
    finally:
        log.disabled = before
    return found[0] if len(found) == 1 else None


def _inlined(node: Node, select: Node, depth: int) -> Node:
    """Return ``node`` with columns of inner queries replaced by their expressions."""
    from sqlglot import exp  # noqa: PLC0415 - large

    inner = _inner_queries(select)
    if not inner or not depth:
        return node

    def replaced(each: Node) -> Node:
        if not isinstance(each, exp.Column):
            return each
        for name, query in inner.items():
            if each.table and each.table.lower() != name:
                continue
            for made in query.expressions:
                if made.alias_or_name.lower() == each.name.lower() and isinstance(made, exp.Alias):
                    return exp.paren(_inlined(made.this.copy(), query, depth - 1))
        return each

    return node.copy().transform(replaced)


def _left_in(select: Node, depth: int) -> Conditions:
    """Return the row conditions of ``select`` and of the queries that it reads."""
    inner = _inner_queries(select).values() if depth else ()
    return _conditions(select.args.get("where")).union(*(_left_in(each, depth - 1) for each in inner))


def _inner_queries(select: Node) -> dict[str, Node]:
    """Return the subqueries of ``select`` by their alias."""
    from sqlglot import exp  # noqa: PLC0415 - large

    sources = [join.this for join in select.args.get("joins") or ()]
    sources += [source.this] if (source := select.args.get("from_") or select.args.get("from")) else []
    named = {each.alias_or_name.lower(): each.this for each in select.root().find_all(exp.CTE)}
    found: dict[str, Node] = {}
    for source in sources:
        query = source.this if isinstance(source, exp.Subquery) else named.get(source.name.lower())
        if isinstance(query, exp.Select) and query is not select:
            found[source.alias_or_name.lower()] = query
    return found


def _core(node: Node) -> tuple[str, Conditions]:
    """Return the figure as text without its presentation, and the conditions on its rows."""
    from sqlglot import exp  # noqa: PLC0415 - large

    node = _bare(node.copy())
    filtered: set[str] = set()

    def pulled(each: Node) -> Node:
        if isinstance(each, exp.Filter):
            filtered.update(_conditions(each.expression))
            return each.this
        if isinstance(each, exp.AggFunc) and isinstance(each.this, exp.Case):
            case = each.this
            default = case.args.get("default")
            empty = default is None or default.sql() in ({"0", "NULL"} if isinstance(each, exp.Sum) else {"NULL"})
            if case.this is None and len(case.args["ifs"]) == 1 and empty:
                filtered.update(_conditions(case.args["ifs"][0].this))
                each.set("this", case.args["ifs"][0].args["true"])
        if isinstance(each, exp.Sum):
            inner = _bare(each.this)
            summed = inner.this if isinstance(inner, exp.Filter) else inner
            if isinstance(summed, exp.Sum):
                # A sum of partial sums is the sum.
                return pulled(inner)
        return each

    return _text(node.transform(pulled)), frozenset(filtered)


def _bare(node: Node) -> Node:
    """Return ``node`` without brackets, casts, rounding, and replacement of NULL by zero."""
    from sqlglot import exp  # noqa: PLC0415 - large

    while True:
        empty = isinstance(node, exp.Coalesce) and [each.sql() for each in node.expressions] == ["0"]
        if not (isinstance(node, exp.Paren | exp.Cast | exp.Round | exp.Alias) or empty):
            return node
        node = node.this


def _conditions(node: Node | None) -> Conditions:
    from sqlglot import exp  # noqa: PLC0415 - large

    if node is None:
        return frozenset()
    if isinstance(node, exp.Where | exp.Paren):
        return _conditions(node.this)
    if isinstance(node, exp.And):
        return _conditions(node.left) | _conditions(node.right)
    return frozenset([_text(node)])


def _text(node: Node) -> str:
    """Return a tree as text that is equal for equivalent trees."""
    from sqlglot import exp  # noqa: PLC0415 - large

    if isinstance(node, exp.Paren):
        return _text(node.this)
    if isinstance(node, exp.Column):
        return node.name.lower()
    if isinstance(node, exp.Add | exp.Mul | exp.And | exp.Or):
        return f"({type(node).__name__} {' '.join(sorted(_flat(node, type(node))))})"
    if isinstance(node, exp.EQ | exp.NEQ):
        return f"({type(node).__name__} {' '.join(sorted((_text(node.left), _text(node.right))))})"
    if isinstance(node, exp.GT | exp.GTE):
        return f"({'LT' if isinstance(node, exp.GT) else 'LTE'} {_text(node.right)} {_text(node.left)})"
    if isinstance(node, exp.Count) and not isinstance(node.this, exp.Column | exp.Distinct) and node.this is not None:
        # *, 1 and other constants all count every row.
        return "(Count)" if isinstance(node.this, exp.Star | exp.Literal) else f"(Count {_text(node.this)})"
    if isinstance(node, exp.Literal | exp.Boolean):
        return repr(node.this)
    parts: list[str] = []
    for name, value in sorted(node.args.items()):
        for each in cast("list[Any]", value) if isinstance(value, list) else [value]:
            if isinstance(each, exp.Expr):
                parts.append(_text(each))
            elif isinstance(each, str) and name == "this":
                parts.append(each.lower())
    return f"({type(node).__name__}{''.join(f' {part}' for part in parts)})"


def _flat(node: Node, kind: type[Node]) -> Iterator[str]:
    if isinstance(node, kind):
        for side in (node.args["this"], node.args["expression"]):
            yield from _flat(side, kind)
    elif type(node).__name__ == "Paren" and isinstance(node.this, kind):
        yield from _flat(node.this, kind)
    else:
        yield _text(node)


# ``metric('revenue')`` becomes the aggregate; after FROM or JOIN it becomes a table of groups.

CALL = "metric"
LONGEST_SQL = 200_000
"""Longest SQL that is expanded, in characters, as in the engine."""
OFFER_CHARS = 1_200
"""About 300 tokens."""
_CALLED = regex(r"(?i)\bmetric\s*\(")


@frozen
class ExpandedQuery:
    """``sql`` with definitions in place of their names, and the definitions ``used``."""

    sql: str
    used: tuple[Metric, ...] = ()


async def expanded_query(sql: str, metrics: Metrics) -> ExpandedQuery:
    """Return ``sql`` with every ``metric('NAME')`` replaced. Raises QueryFailed: the metric is unknown or unusable, or
    not usable in this place."""
    if len(sql) > LONGEST_SQL or not _CALLED.search(sql):
        return ExpandedQuery(sql)
    return await asyncio.to_thread(expanded, sql, metrics)


def expanded(sql: str, metrics: Metrics) -> ExpandedQuery:
    """Return ``expanded_query`` of ``sql``. Blocks."""
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
    """Return a subquery that groups ``metric`` by ``columns``, by default its whole grain. Raises QueryFailed."""
    if not metric.source:
        hint = f"Write metric('{metric.name}') into the SELECT of a query on its table, or add from to {metric.shown}."
        raise QueryFailed(f"{metric.name} names no table, so it can't be one.", hint)
    grain = {name.lower(): (name, sql) for name, sql in metric.grain}
    groups: list[tuple[str, str]] = list(metric.grain) if not columns else []
    for column in columns:
        if grain and column.lower() not in grain:
            known = ", ".join(name for name, _ in metric.grain)
            raise QueryFailed(f"{metric.name} is not agreed by {one_line(column, 60)}.", f"It is by {known}.")
        groups.append(grain.get(column.lower(), (column, quoted(column))))
    listed = [f"{sql} AS {quoted(name)}" for name, sql in groups]
    value = f"{_in_brackets(metric.sql)} AS {quoted(metric.name)}"
    return f"(SELECT {', '.join([*listed, value])} FROM {metric.source}{' GROUP BY ALL' if groups else ''})"


def offer(metrics: Sequence[Metric]) -> str:
    """Return the list of definitions for the model, limited in length; empty for none."""
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
    """Return a complete definition for the model and the user."""
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
    """A ``metric(…)`` from ``start`` to ``end`` with its arguments; ``table``: it follows FROM or JOIN."""

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
    # A trailing comment must not hide the bracket.
    return f"({sql}\n)" if "--" in sql else f"({sql})"
