"""The parse tree of a query for checks: its SELECTs, what each reads, and the origin of columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import duckdb

from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.database import quoted
from ba_tui.features.data.analysis.engine_process.traps.probes import known

Node: TypeAlias = dict[str, Any]
AGGREGATES = known(
    "sum avg mean count count_star min max median mode any_value first last arg_max arg_min max_by min_by "
    "stddev variance quantile quantile_cont quantile_disc list string_agg bool_and bool_or product fsum "
    "kahan_sum"
)
OUTER = frozenset({"LEFT", "RIGHT", "FULL", "OUTER"})


@frozen
class Relation:
    """An item of FROM: a table (``table``, empty otherwise) or another SELECT of the query (``select``). ``optional``:
    an outer join may fill it with NULL."""

    alias: str
    node: Node
    table: str
    select: Select | None
    optional: bool

    @property
    def row(self) -> str:
        """The column with its row numbers in ``Select.source``."""
        return quoted(f"~{self.alias}")


@frozen
class ColumnOrigin:
    """A table column, and the SELECTs between it and its use, the nearest first. ``expressions`` are the column's
    expression in each of them."""

    table: str
    column: str
    selects: tuple[Select, ...] = ()
    expressions: tuple[Node, ...] = ()


class Query:
    """A whole statement. ``tables`` maps lower-case names to tables; ``columns`` returns a table's columns."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        sql: str,
        tables: Mapping[str, str],
        columns: Callable[[str], Sequence[str]],
    ) -> None:
        self._connection = connection
        self._bytes = sql.encode()
        self.sql = sql
        self.tables = tables
        self.samples: dict[str, str] = {}
        """The sample tables of tables that are not checked completely."""
        self.columns = columns
        self.selects: list[Select] = []
        row = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchone()
        tree: Node = json.loads(row[0]) if row else {"error": True}
        if not tree["error"]:
            for statement in tree["statements"]:
                self.build(statement["node"], {}, "top")

    def build(self, node: Node, known: Mapping[str, Select | None], role: str) -> Select | None:
        """Register the SELECTs of ``node``, and return it if it is one."""
        named = dict(known)
        for entry in node.get("cte_map", {}).get("map", ()):
            named[entry["key"].lower()] = self.build(entry["value"]["query_node"], named, entry["key"])
        if node.get("type") != "SELECT_NODE":
            for each in (*node.get("children", ()), node.get("left"), node.get("right"), node.get("child")):
                if isinstance(each, dict):
                    self.build(cast("Node", each), named, "part")
            return None
        select = Select(self, node, named, role)
        self.selects.append(select)
        expressions = [node[key] for key in ("select_list", "where_clause", "having", "qualify", "modifiers")]
        for each in walked(expressions):
            if each.get("class") == "SUBQUERY":
                self.build(each["subquery"]["node"], named, each.get("subquery_type", "SCALAR"))
        return select

    def part(self, node: Node) -> str:
        """Return the source text of ``node``."""
        start, length = node.get("query_location"), node.get("query_location_length", 0)
        if not isinstance(start, int) or start > len(self._bytes):
            return ""
        return self._bytes[start : start + length].decode(errors="replace").strip()

    def text(self, node: Node) -> str:
        """Return an expression as SQL."""
        select = {**_EMPTY, "select_list": [{**node, "alias": ""}]}
        return self.whole(select).removeprefix("SELECT ")

    def whole(self, node: Node) -> str:
        """Return a SELECT as SQL."""
        tree = json.dumps({"error": False, "statements": [{"node": node, "named_param_map": []}]})
        row = self._connection.execute("SELECT json_deserialize_sql(?)", [tree]).fetchone()
        return str(row[0]) if row else ""


_EMPTY: Node = {
    "type": "SELECT_NODE", "modifiers": [], "cte_map": {"map": []}, "select_list": [], "where_clause": None,
    "from_table": {"type": "EMPTY", "alias": "", "sample": None}, "group_expressions": [], "group_sets": [],
    "aggregate_handling": "STANDARD_HANDLING", "having": None, "sample": None, "qualify": None,
}  # fmt: skip


class Select:
    """One SELECT. ``role``: ``top``, the name of a CTE, ``from`` for a subquery in FROM, or the type of an expression's
    subquery."""

    def __init__(self, query: Query, node: Node, known: Mapping[str, Select | None], role: str) -> None:
        self.query = query
        self.node = node
        self.role = role
        self.items: list[Node] = node["select_list"]
        self.relations: list[Relation] = []
        self.joins: list[Node] = []
        self._known = known
        self._read(node["from_table"], optional=False)
        self.conjuncts = conjuncts(node["where_clause"])

    def _read(self, node: Node, *, optional: bool) -> None:
        kind = node["type"]
        if kind == "JOIN":
            how = node["join_type"]
            self._read(node["left"], optional=optional or how in {"RIGHT", "FULL", "OUTER"})
            self._read(node["right"], optional=optional or how in {"LEFT", "FULL", "OUTER"})
            self.joins.append(node)
            return
        table, select = "", None
        if kind == "BASE_TABLE":
            name = _name(node)
            if name.lower() in self._known:
                select = self._known[name.lower()]
            else:
                table = self.query.tables.get(name.lower(), "")
            alias = node["alias"] or name
        else:
            alias = node["alias"] or f"~{len(self.relations)}"
            if kind == "SUBQUERY":
                select = self.query.build(node["subquery"]["node"], self._known, "from")
        self.relations.append(Relation(alias, node, table, select, optional))

    # Columns

    @property
    def outputs(self) -> list[str]:
        """The names of its output columns."""
        names: list[str] = []
        for item in self.items:
            if item["class"] == "STAR":
                names += [name for each in self.relations for name in self.names(each)]
            else:
                names.append(item["alias"] or (item["column_names"][-1] if item["class"] == "COLUMN_REF" else ""))
        return names

    def names(self, relation: Relation) -> list[str]:
        """Return the columns of a relation."""
        if relation.table:
            return list(self.query.columns(relation.table))
        return relation.select.outputs if relation.select else []

    def item(self, name: str) -> Node | None:
        """Return the expression of the output ``name``."""
        for item in self.items:
            plain = item["column_names"][-1] if item["class"] == "COLUMN_REF" else ""
            if (item["alias"] or plain).lower() == name.lower():
                return item
        return None

    def owner(self, column: Node) -> tuple[Relation, str] | None:
        """Return the relation of a column reference."""
        *qualifier, name = column["column_names"]
        for each in self.relations:
            if qualifier and qualifier[-1].lower() != each.alias.lower():
                continue
            found = next((known for known in self.names(each) if known.lower() == name.lower()), "")
            if found:
                return each, found
        return None

    def origin(self, column: Node) -> ColumnOrigin | None:
        """Return the table column behind a reference; None when it is computed from several."""
        if not (found := self.owner(column)):
            return None
        relation, name = found
        if relation.table:
            return ColumnOrigin(relation.table, name)
        inner = relation.select
        if inner is None:
            return None
        item = inner.item(name)
        if item is None:
            item = {"class": "COLUMN_REF", "column_names": [name]}
        for each in columns_in(item):
            if deeper := inner.origin(each):
                return ColumnOrigin(
                    deeper.table, deeper.column, (inner, *deeper.selects), (item, *deeper.expressions)
                )  # fmt: skip
        return None

    def table_of(self, relation: Relation) -> str:
        """Return the first table that a relation reads."""
        if relation.table or relation.select is None:
            return relation.table
        return relation.select.table

    @property
    def table(self) -> str:
        """The first table that it reads."""
        return next((name for each in self.relations if (name := self.table_of(each))), "")

    def aggregates(self) -> Iterator[tuple[Node, Node]]:
        """Yield each aggregate call of its outputs, with the whole expression."""
        for item in self.items:
            for each in walked(item, into=False):
                if each.get("class") == "FUNCTION" and each["function_name"].lower() in AGGREGATES:
                    yield each, item

    def _resolved(self, column: Node) -> Node:
        """Return the expression of an output's alias, as in GROUP BY; other expressions unchanged."""
        if column["class"] == "COLUMN_REF" and len(column["column_names"]) == 1:
            item = self.item(column["column_names"][0])
            if item is not None and item["class"] != "COLUMN_REF" and not self.owner(column):
                return item
        if column["class"] == "CONSTANT" and column["literal"]["kind"] == "INTEGER":
            place = int(column["literal"]["text"]) - 1
            return self.items[place] if 0 <= place < len(self.items) else column
        return column

    def groups(self) -> list[Node]:
        """Return the GROUP BY expressions; GROUP BY ALL is expanded."""
        expressions: list[Node] = self.node["group_expressions"]
        if self.node["aggregate_handling"] == "FORCE_AGGREGATES" and not expressions:
            calls = [item for _, item in self.aggregates()]
            return [item for item in self.items if not any(item is call for call in calls)]
        return [self._resolved(each) for each in expressions]

    # SQL

    @property
    def prefix(self) -> str:
        """The WITH clause of everything that it may name."""
        named = [(name, each) for name, each in self._known.items() if each is not None and each is not self]
        listed = ", ".join(f"{quoted(name)} AS ({self.query.whole(each.own)})" for name, each in named)
        return f"WITH {listed} " if listed else ""

    @property
    def own(self) -> Node:
        """Return its tree without the WITH clause, which ``prefix`` has."""
        return {**self.node, "cte_map": {"map": []}}

    def source(self, numbered: Sequence[Relation] = (), *, joined_only: bool = False, whole: bool = False) -> str:
        """Return its FROM as SQL. Relations in ``numbered`` get row numbers and, when large, are sampled unless in
        ``whole``. ``joined_only``: keep only conditions that join tables, including those of WHERE."""
        if whole and self.query.samples:
            kept, self.query.samples = self.query.samples, {}
            text = self.source(numbered, joined_only=joined_only)
            self.query.samples = kept
            return text
        text = self._from(self.node["from_table"], {each.alias for each in numbered}, joined_only=joined_only)
        if joined_only:
            kept = [self.query.text(each) for each in self.conjuncts if len(self.touched(each)) > 1]
            text += f" WHERE {' AND '.join(kept)}" if kept else ""
        return text

    def _from(self, node: Node, numbered: set[str], *, joined_only: bool) -> str:
        kind = node["type"]
        if kind == "JOIN":
            left = self._from(node["left"], numbered, joined_only=joined_only)
            right = self._from(node["right"], numbered, joined_only=joined_only)
            how = node["join_type"]
            if node["using_columns"]:
                return f"({left} {how} JOIN {right} USING ({', '.join(map(quoted, node['using_columns']))}))"
            found = conjuncts(node["condition"])
            if joined_only:
                found = [each for each in found if len(self.touched(each)) > 1]
            if not found and node["ref_type"] in {"REGULAR", "CROSS"}:
                return f"({left} CROSS JOIN {right})"
            if node["ref_type"] == "NATURAL":
                return f"({left} NATURAL {how} JOIN {right})"
            return f"({left} {how} JOIN {right} ON {' AND '.join(map(self.query.text, found))})"
        alias = node["alias"] or (_name(node) if kind == "BASE_TABLE" else "")
        whole = self.query.whole({**_EMPTY, "select_list": [_STAR], "from_table": {**node, "alias": ""}})
        bare = whole.split(" FROM ", 1)[1] if " FROM " in whole else ""
        if kind == "BASE_TABLE":
            name = _name(node).lower()
            if name not in self._known:
                bare = quoted(self.query.tables.get(name, _name(node)))
        table = next((each.table for each in self.relations if each.alias == alias), "")
        if alias in numbered and (sample := self.query.samples.get(table)):
            return f'(SELECT *, "~row" AS {quoted("~" + alias)} FROM {sample}) AS {quoted(alias)}'
        if alias in numbered:
            return f"(SELECT *, row_number() OVER () AS {quoted('~' + alias)} FROM {bare}) AS {quoted(alias)}"
        return f"{bare} AS {quoted(alias)}" if alias else bare

    def touched(self, node: Node) -> set[str]:
        """Return the aliases of the relations that an expression reads."""
        found = (self.owner(each) for each in columns_in(node))
        return {relation.alias for owned in found if owned for relation in (owned[0],)}

    def where(self, left_out: Node | None = None, *more: str) -> str:
        """Return its WHERE as SQL without ``left_out`` and with ``more``; empty without conditions."""
        kept = [self.query.text(each) for each in self.conjuncts if each is not left_out]
        kept += [each for each in more if each]
        return f" WHERE {' AND '.join(f'({each})' for each in kept)}" if kept else ""


_STAR: Node = {
    "class": "STAR", "type": "STAR", "alias": "", "relation_name": "", "exclude_list": [], "replace_list": [],
    "columns": False, "expr": None, "unpacked": False, "qualified_exclude_list": [], "rename_list": [],
}  # fmt: skip


def _name(node: Node) -> str:
    path = node.get("qualified_name", {}).get("path")
    return str(path[-1]) if path else str(node.get("table_name", ""))


def conjuncts(node: Node | None) -> list[Node]:
    """Return the conditions joined by AND."""
    if node is None:
        return []
    if node.get("type") == "CONJUNCTION_AND":
        return [part for child in node["children"] for part in conjuncts(child)]
    return [node]


def walked(value: Any, *, into: bool = True, keep: str = "") -> Iterator[Node]:
    """Yield every node of a tree; with ``into`` false without those in subqueries and windows. ``keep`` is a type of
    subquery that is yielded itself."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            node = cast("Node", each)
            if not into and node.get("class") in {"SUBQUERY", "WINDOW"} and node.get("subquery_type") != keep:
                continue
            yield node
            if not into and node.get("class") == "SUBQUERY":
                continue
            waiting.extend(reversed(list(node.values())))
        elif isinstance(each, list):
            waiting.extend(reversed(cast("list[Any]", each)))


def columns_in(node: Any) -> list[Node]:
    """Return the column references of an expression, without those in its subqueries."""
    return [each for each in walked(node, into=False) if each.get("class") == "COLUMN_REF"]


def reference(alias: str, name: str) -> Node:
    """Return a column reference in the parser's form."""
    return {"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "query_location": 0, "query_location_length": 0,
            "column_names": [alias, name]}  # fmt: skip


def arguments(call: Node) -> list[Node]:
    return [each["expression"] for each in call.get("arguments", ())]


def is_call(node: Node, *names: str) -> bool:
    return node.get("class") == "FUNCTION" and node["function_name"].lower() in names


def home(select: Select, column: Node) -> str:
    """Return the table of a column reference, else the first table."""
    origin = select.origin(column)
    return origin.table if origin else select.table
