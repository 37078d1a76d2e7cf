"""What a text of SQL would do, from DuckDB's own parser: only statements that read are run, and only of tables.

The engine's settings refuse files, network and extensions as well; here a refusal gets its words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

import duckdb

from ba_tui.core.ports.tables import Statement
from ba_tui.core.text.patterns import regex
from ba_tui.features.data.analysis.engine_process.failures import failed, refused, said

LONGEST = 200_000


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SELECTS = frozenset({"SELECT", "MULTI"})
"""DuckDB calls a PIVOT that must look for its columns first MULTI, and other pairs of statements too."""
NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
FILE_FUNCTIONS = _words(
    "read_csv read_csv_auto read_parquet parquet_scan read_json read_json_auto read_ndjson read_ndjson_auto"
)
SOURCES = _words(
    "range generate_series unnest repeat repeat_row json_each json_tree summary histogram histogram_values "
    "test_all_types duckdb_columns duckdb_functions duckdb_keywords duckdb_tables duckdb_types duckdb_views "
    "pragma_table_info pragma_version pragma_collations regexp_split_to_table flatten"
)
"""Functions that may stand where a table does."""
ACTS = _words(
    "nextval setval currval query query_table checkpoint force_checkpoint getenv read_text read_blob glob sniff_csv "
    "which_secret load_extension install_extension enable_logging disable_logging write_log set_config "
    "add_parquet_key write_csv shell system"
)
CHANGES = frozenset(
    ["insert", "update", "delete", "merge", "create", "drop", "alter", "copy", "attach", "detach", "truncate"]
)
OTHERS: Mapping[str, str] = {
    "COPY": "COPY writes or reads files",
    "ATTACH": "ATTACH opens a database file",
    "DETACH": "DETACH closes a database",
    "LOAD": "extensions are not loaded or installed",
    "SET": "the engine's settings are fixed",
    "PRAGMA": "PRAGMA may change how the engine works",
    "CALL": "CALL runs a procedure",
    "EXPORT": "EXPORT writes files",
    "TRANSACTION": "the engine keeps its own transactions",
}
INSTEAD: Mapping[str, str] = {
    "COPY": "Write COPY (SELECT …) TO 'new.csv' with no option but FORMAT; in `ba data query`, use --output.",
    "EXPORT": "Write one result: COPY (SELECT …) TO 'new.parquet'.",
    "ATTACH": "Query the file by its path: FROM 'shop.sqlite'. Databases on servers go into the setting sources.",
    "LOAD": "None is needed: CSV, JSON, Parquet, Excel, SQLite and Arrow files are queried by their path.",
    "SET": "The person sets limits in the settings analysis.memory_gb, analysis.threads and analysis.max_rows.",
    "CREATE": "Run its SELECT: the rows are kept as the next result (R1, R2, …), a table for later queries.",
    **dict.fromkeys(
        ("INSERT", "UPDATE", "DELETE", "DROP", "ALTER", "MERGE_INTO"),
        "Data is never changed here: SELECT the rows as they should be, and write COPY (SELECT …) TO 'new.csv'.",
    ),
}
"""What to do in place of a statement, by its kind."""
_EXPLAIN = regex(r"(?is)\s*explain\s*(?:\((?P<options>[^)]*)\)|(?P<analyze>analyze)\b)?\s*(?P<inner>.*)")
_PIVOT = regex(r"(?is)\b(?:un)?pivot")


def parsed(connection: duckdb.DuckDBPyConnection, sql: str, known: Mapping[str, str]) -> tuple[Statement, ...]:
    """Return the statements of ``sql``. ``known``: the tables that there are, by their names in lower case.

    Raises:
        HandlerFailed: it is not SQL that DuckDB understands.
    """
    if len(sql) > LONGEST:
        raise failed(f"The SQL is longer than {LONGEST // 1000} KB.")
    if sql.lstrip().startswith("."):
        word = sql.split()[0]
        raise refused(f"{word} is a command of the DuckDB shell, not SQL.")
    try:
        found = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise failed(f"This is not valid SQL: {said(error).rstrip('.')}.", _line(error)) from error
    return tuple(
        _statement(connection, each.query.strip().rstrip(";").strip(), each.type.name, known) for each in found
    )


def _statement(connection: duckdb.DuckDBPyConnection, text: str, kind: str, known: Mapping[str, str]) -> Statement:
    if kind == "EXPLAIN":
        match = _EXPLAIN.fullmatch(text)
        inner = parsed(connection, match["inner"], known) if match else ()
        if len(inner) != 1 or inner[0].kind != "read":
            return Statement(text, "other", inner[0].why if inner else "EXPLAIN of an unknown statement")
        return replace(inner[0], sql=text, kind="explain")
    if kind not in SELECTS:
        why = OTHERS.get(kind, f"{kind.replace('_', ' ')} changes data")
        return Statement(text, "other", why, instead=INSTEAD.get(kind, ""))
    tree = _tree(connection, text)
    if tree is None:
        return _by_tokens(text, known)
    seen = _Seen(tree)
    tables = tuple(dict.fromkeys(known[name.lower()] for name in seen.tables if name.lower() in known))
    missing = (name for name in seen.tables if name.lower() not in known and name not in seen.named and _is_path(name))
    files = tuple(dict.fromkeys((*missing, *seen.files)))
    return Statement(text, "other" if seen.why else "read", seen.why, tables, files)


def _tree(connection: duckdb.DuckDBPyConnection, text: str) -> Any:
    """The statement as DuckDB parsed it; None for a few that it can't show."""
    query = "SELECT json_serialize_sql(?, skip_default := true, skip_empty := true, skip_null := true)"
    # A DESCRIBE, SHOW or SUMMARIZE is shown inside of a query only.
    for each in (text, f"FROM (\n{text}\n)"):
        try:
            row = connection.execute(query, [each]).fetchone()
        except duckdb.Error:
            continue
        tree = json.loads(row[0]) if row else {"error": True}
        if not tree["error"]:
            return tree["statements"]
    return None


class _Seen:
    """What a parsed statement names: tables, files, and why it does more than read."""

    def __init__(self, tree: Any) -> None:
        self.tables: list[str] = []
        self.named: set[str] = set()
        self.files: list[str] = []
        self.why = ""
        for node in _walk(tree):
            self._note(node)

    def _note(self, node: dict[str, Any]) -> None:
        kind = str(node.get("type", ""))
        if kind.endswith("_NODE") and kind not in NODES:
            self.why = self.why or f"{kind.split('_')[0]} changes data"
        if isinstance(entries := cast("Any", node.get("cte_map")), dict):
            self.named |= {str(entry["key"]) for entry in cast("Any", entries).get("map", ())}
        if kind == "BASE_TABLE":
            self.tables.append(".".join(_path(node)))
        elif kind == "TABLE_FUNCTION":
            self._source(node["function"])
        elif node.get("class") == "FUNCTION" and (name := str(node.get("function_name", "")).lower()) in ACTS:
            self.why = self.why or f"{name}() does more than compute"

    def _source(self, function: dict[str, Any]) -> None:
        name = str(function.get("function_name", "")).lower()
        if name in FILE_FUNCTIONS:
            arguments = [argument["expression"] for argument in function.get("arguments", ())]
            texts = [
                str(each["literal"]["text"]) for each in arguments if each.get("literal", {}).get("kind") == "STRING"
            ]
            self.files += texts[:1]
            self.why = self.why or f"{name}() reads a file by itself"
        elif name in ACTS:
            self.why = self.why or f"{name}() reads files or does more than read"
        elif name not in SOURCES:
            self.why = self.why or f"{name or 'this'}() is an unknown source of rows"


def _walk(value: Any) -> Iterator[dict[str, Any]]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield cast("dict[str, Any]", each)
            waiting.extend(reversed(list(cast("dict[str, Any]", each).values())))
        elif isinstance(each, list):
            waiting.extend(reversed(cast("list[Any]", each)))


def _path(node: dict[str, Any]) -> list[str]:
    path = node.get("qualified_name", {}).get("path")
    return [str(part) for part in path] if path else [str(node.get("table_name", ""))]


def _is_path(name: str) -> bool:
    return any(sign in name for sign in "./*\\~") and not name.lower().startswith("information_schema.")


def _by_tokens(text: str, known: Mapping[str, str]) -> Statement:
    """A PIVOT, which DuckDB parses but does not show as a tree: judged by its words."""
    tokens = duckdb.tokenize(text)
    ends = [start for start, _ in tokens[1:]] + [len(text.encode())]
    data = text.encode()
    words = [data[start:end].decode(errors="replace").strip() for (start, _), end in zip(tokens, ends, strict=True)]
    lower = [word.strip('"').lower() for word in words]
    bad = next((word for word in lower if word in CHANGES | ACTS | FILE_FUNCTIONS), "")
    if bad or not _PIVOT.search(text):
        return Statement(text, "other", f"{bad.upper() or 'it'} does more than read")
    return Statement(text, "read", "", tuple(dict.fromkeys(known[word] for word in lower if word in known)))


def _line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.startswith("LINE ")), "")
