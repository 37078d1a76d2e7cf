"""Queries that call a column what a definition is called, and compute it otherwise. Pure: no query is run.

Two computations are the same when their trees are, after what does not change the figure is taken away: names of
tables, case, brackets, the order of sums and conditions, rounding at the end, CASE in the place of FILTER.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.metrics.definitions import Metric, folded

LONGEST = 50_000
"""Characters of a query that are checked."""
DEEPEST = 20
"""Queries within queries through which a column is followed."""
SHOWN = 120
Node: TypeAlias = Any
"""A part of a query as sqlglot has it; naming its type would mean to load it."""
Conditions: TypeAlias = frozenset[str]


@frozen
class MetricFinding:
    """``title`` in a few words, ``why`` in one sentence, ``proof``: a query that shows both figures, empty when there
    is none."""

    title: str
    why: str
    proof: str = ""


def differences(sql: str, metrics: Sequence[Metric]) -> tuple[MetricFinding, ...]:
    """Return a finding for each column of ``sql`` with the name of one of ``metrics`` that is computed otherwise.

    ``sql`` has the definitions in place of ``metric('NAME')``. What can't be parsed has none.
    """
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
    """Why the SQL of ``metric`` is no aggregate; empty when it is one."""
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
            given = _inlined(projection.this, select, DEEPEST)
            if given.find(exp.AggFunc) and not _same(given, select, metric):
                yield _finding(root, select, projection, metric)


def _same(given: Node, select: Node, metric: Metric) -> bool:
    agreed = _parsed(f"SELECT {metric.sql} AS x")
    if agreed is None:
        return True
    definition, wanted = _core(agreed.expressions[0].this)
    core, filtered = _core(given)
    where = _left_in(select, DEEPEST)
    # Rows may be left out by the query itself; a filter of the figure's own is part of how it is computed.
    return core == definition and wanted <= filtered | where and filtered <= wanted


def _finding(root: Node, select: Node, projection: Node, metric: Metric) -> MetricFinding:
    shown = projection.alias_or_name
    called = f"{metric.name}" if folded(shown) == folded(metric.name) else f"{metric.name} ({shown})"
    computed = one_line(projection.this.sql(dialect="duckdb"), SHOWN)
    owner = f", owner {metric.owner}" if metric.owner else ""
    why = f"The query computes it as {computed}; agreed is {one_line(metric.sql, SHOWN)} ({metric.shown}{owner})."
    return MetricFinding(f"{called} is not computed as agreed", why, _proof(root, select, projection, metric))


def _proof(root: Node, select: Node, projection: Node, metric: Metric) -> str:
    """Both figures side by side, where the query reads tables itself."""
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
    """``node`` with the columns of inner queries replaced by what computes them."""
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
    """The conditions on the rows of ``select`` and of the queries that it reads."""
    inner = _inner_queries(select).values() if depth else ()
    return _conditions(select.args.get("where")).union(*(_left_in(each, depth - 1) for each in inner))


def _inner_queries(select: Node) -> dict[str, Node]:
    """The queries that ``select`` reads from, by the names it gives them."""
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
    """The figure without what only shows it, as text, and the conditions on its rows."""
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
    """``node`` without brackets, casts, rounding, and zero in the place of nothing."""
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
    """A tree as text that is the same for trees that mean the same."""
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
        # Every row, however it is said: *, 1 or another constant.
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
