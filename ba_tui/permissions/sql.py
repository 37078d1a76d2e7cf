"""Classifies SQL by its grammar: it reads, writes, changes the schema, or is unknown.

Nothing is run. Statements that are not known to be harmless are ``unknown``, and those ask.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeAlias

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.permissions.conditions import StatementKind

LONGEST = 100_000
DIALECT = "duckdb"
SqlNode: TypeAlias = Any
"""A node of sqlglot's syntax tree. Naming its type would load sqlglot."""

_READS = ("Select", "SetOperation", "Subquery", "Values", "Pivot", "Describe", "Show", "Summarize", "Table", "Query")
_WRITES = ("Insert", "Update", "Delete", "Merge", "Copy", "TruncateTable")
_CHANGES = ("Create", "Drop", "Alter", "Attach", "Detach", "Install", "Comment", "Into", "Analyze", "Grant", "Revoke")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PRAGMAS = _words(
    "table_info show show_tables show_tables_expanded show_databases database_list database_size collations functions "
    "version platform storage_info metadata_info"
)
_FILES = _words(
    "read_csv read_csv_auto read_parquet parquet_scan parquet_metadata parquet_schema parquet_file_metadata "
    "parquet_kv_metadata read_json read_json_auto read_json_objects read_ndjson read_ndjson_auto read_ndjson_objects "
    "read_text read_blob read_xlsx sniff_csv glob st_read st_read_meta sqlite_scan iceberg_scan delta_scan "
    "iceberg_metadata iceberg_snapshots readcsv readparquet readjson arrow_scan read_avro"
)
"""Functions whose first argument names files."""
_SOURCES = _FILES | _words(
    "range generate_series generateseries unnest explode repeat_row values duckdb_columns duckdb_constraints "
    "duckdb_databases duckdb_dependencies duckdb_extensions duckdb_functions duckdb_indexes duckdb_keywords "
    "duckdb_schemas duckdb_sequences duckdb_tables duckdb_types duckdb_views duckdb_memory duckdb_optimizers "
    "pragma_table_info pragma_database_size pragma_storage_info pragma_version pragma_collations json_each json_tree "
    "summary test_all_types histogram histogram_values regexp_split_to_table string_split flatten metric "
    "json_array_elements json_array_elements_text json_each_text json_object_keys json_to_record json_to_recordset "
    "jsonb_array_elements jsonb_array_elements_text jsonb_each jsonb_each_text jsonb_object_keys jsonb_to_record "
    "jsonb_to_recordset jsonb_path_query regexp_matches string_to_table generate_subscripts explodinggenerateseries "
    "posexplode inline stack"
)
"""Functions that may replace a table name and only read; ``metric`` stands for agreed definitions. Other functions may
have any effect."""
_ACTS = _words(
    "getenv query query_table load_extension writefile readfile edit lo_import lo_export lo_unlink pg_read_file "
    "pg_read_binary_file pg_ls_dir pg_write_file pg_terminate_backend pg_cancel_backend pg_reload_conf pg_sleep "
    "pg_advisory_lock set_config dblink dblink_exec nextval setval currval load_file sys_exec sys_eval xp_cmdshell "
    "sleep benchmark http_get http_post http_head curl_get curl_post shellfs read_duckdb postgres_query "
    "postgres_execute mysql_query mysql_execute sqlite_query sqlite_attach postgres_attach force_checkpoint "
    "checkpoint enable_logging disable_logging write_log fts_main which_secret duckdb_secrets duckdb_settings "
    "current_setting install_extension system eval"
)
"""Functions that do more than compute: run code, read files or secrets, wait, change state."""
_ACTING = regex(
    r"pg_(?!typeof$|size_pretty$|\w+_size$|get_|\w+_is_visible$|is_|backend_pid$|version$|collation_for$|encoding_to)"
    r"|lo_|lowrite|loread|dblink|xp_|sp_|http_|curl_|load_|install_|shell|exec|write|readfile"
    r"|(?:query|cursor|table|schema|database)_to_(?:xml|json)"
)
"""Name prefixes of further such functions, of engines and extensions."""
_REMOTE = regex(
    r"(?i)^\s*(?:https?|s3|s3a|s3n|gcs|gs|r2|azure?|abfss?|hf|ftps?|sftp|ssh|hdfs|md|[a-z][a-z0-9+]*)://|^md:"
)
_SERVER = regex(r"(?i)^\s*(?:postgres(?:ql)?|mysql|ducklake|md|motherduck):|\b(?:host|hostaddr|dbname)\s*=")
_EXPLAIN = regex(r"\s*(?:(analyze)\b|\(([^()]*)\))?\s*(?:verbose\b\s*)?", re.IGNORECASE)
_AMBIGUOUS = regex(r"\\['\"`]|/\*!|\{[#%]")


@frozen
class Sql:
    """The effects of SQL: ``kinds`` of its statements, ``files`` as written, ``network``: it contacts another
    machine."""

    kinds: frozenset[StatementKind]
    files: tuple[str, ...] = ()
    network: bool = False
    trouble: str = ""


@lru_cache(maxsize=128)
def classify(text: str, dialect: str = DIALECT) -> Sql:
    """Return the effects of ``text``, one or more statements. Never raises; takes milliseconds per KB."""
    if len(text) > LONGEST:
        return _unknown(f"it is longer than {LONGEST // 1000} KB")
    if _AMBIGUOUS.search(text) or "\0" in text:
        # Engines disagree on where such a string ends, and so on the rest of the statement.
        return _unknown("it contains characters that engines read differently")
    import sqlglot  # noqa: PLC0415 - 60 ms and 10 MB that most sessions never need
    from sqlglot.errors import SqlglotError  # noqa: PLC0415

    log = logging.getLogger("sqlglot")
    log.setLevel(logging.CRITICAL)  # it prints the text of what it does not know
    try:
        statements = [statement for statement in sqlglot.parse(text, dialect=dialect) if statement is not None]
    except (SqlglotError, RecursionError, ValueError, LookupError, AttributeError, TypeError) as error:
        # The parser itself fails on statements that it supports only partly.
        return _unknown(f"it can't be parsed as SQL ({type(error).__name__})")
    if not statements:
        return _unknown("it contains no statement")
    try:
        return _together([_judged(statement, dialect) for statement in statements])
    except RecursionError:
        return _unknown("it is nested too deeply")


def _unknown(why: str) -> Sql:
    return Sql(frozenset({"unknown"}), trouble=why)


def _together(parts: list[Sql]) -> Sql:
    return Sql(
        frozenset(kind for part in parts for kind in part.kinds),
        tuple(dict.fromkeys(file for part in parts for file in part.files)),
        any(part.network for part in parts),
        next((part.trouble for part in parts if part.trouble), ""),
    )


def _judged(statement: SqlNode, dialect: str) -> Sql:
    name = _name(statement)
    if name == "Command":
        return _command(statement, dialect)
    if name == "Pragma":
        return _pragma(statement)
    nodes = list(statement.walk())
    kinds: set[StatementKind] = {_kind(_name(node)) for node in nodes if _kind(_name(node)) != "read"}
    trouble = next((why for node in nodes if (why := _act(node))), "")
    if not _is(statement, _READS) and not kinds:
        trouble = trouble or f"{name.lower()} is an unknown statement"
    if trouble:
        kinds.add("unknown")
    # In other dialects a dotted name is a table of a schema, and files are on the server.
    files, odd = _files(statement) if dialect == DIALECT else ([], "")
    remote = [file for file in files if _REMOTE.match(file) or _SERVER.search(file)]
    network = bool(remote) or name == "Install"
    local = tuple(file for file in files if file not in remote and file != ":memory:")
    if any(file.strip().startswith("|") or file.strip().endswith("|") for file in files):
        odd = "a name with | at its end runs a command where engines read from pipes"
    if odd and not network:
        kinds.add("unknown")
        trouble = trouble or odd
    return Sql(frozenset(kinds or {"read"}), local, network, trouble)


def _kind(name: str) -> StatementKind:
    if name in _WRITES:
        return "write"
    return "ddl" if name in _CHANGES else "read"


def _command(statement: SqlNode, dialect: str) -> Sql:
    """Return the effects of a statement of which the grammar knows only the first word. Plain EXPLAIN runs nothing."""
    word = str(statement.args.get("this", "")).upper()
    after: Any = statement.args.get("expression")
    rest = after if isinstance(after, str) else str(getattr(after, "name", ""))
    if word == "SHOW" and re.fullmatch(r"[\w\s.]*", rest):
        return Sql(frozenset({"read"}))
    if word != "EXPLAIN":
        return _unknown(f"{word or 'it'} is an unknown statement")
    options = _EXPLAIN.match(rest)
    end = options.end() if options else 0
    inner = classify(rest[end:], dialect)
    runs = options is not None and (options[1] or "analy" in (options[2] or "").lower())
    if runs or inner.trouble:
        return inner
    return Sql(frozenset({"read"}), inner.files, inner.network)


def _pragma(statement: SqlNode) -> Sql:
    call: Any = statement.args.get("this")
    name = str(getattr(call, "name", "") or "").lower()
    if name in _PRAGMAS and _name(call) in {"Anonymous", "Column", "Identifier", "Var"}:
        return Sql(frozenset({"read"}))
    return _unknown(f"PRAGMA {name or '…'} may change how the engine works")


def _act(node: SqlNode) -> str:
    """Return why a node may do more than compute; empty if it does not."""
    name = _function(node)
    if name in _ACTS or _ACTING.match(name):
        return f"{name}() does more than compute"
    if _name(node) == "Table":
        inner: Any = node.args.get("this")
        source = _function(inner)
        if source and source not in _SOURCES:
            return f"{source}() is an unknown source of rows"
    if _name(node) in {"Command", "Execute", "Kill", "Set", "Use", "Transaction", "Commit", "Rollback"}:
        return f"{_name(node).lower()} changes the state of the engine"
    return ""


def _function(node: Any) -> str:
    """Return the name of the function that ``node`` calls, in lower case; empty if it calls none."""
    if node is None:
        return ""
    if _name(node) == "Anonymous":
        return str(node.name).lower()
    return _name(node).lower() if _is(node, ("Func",)) and not _is(node, ("Query",)) else ""


def _files(statement: SqlNode) -> tuple[list[str], str]:
    """Return the files that the statement names, and why there may be more."""
    found: list[str] = []
    odd = ""
    for node in statement.walk():
        name = _name(node)
        if name == "Table" and _name(node.args.get("this")) == "Identifier":
            # A name in parts may be a file as well: to the engine "/a/b".csv is /a/b.csv.
            table = ".".join(str(part.name) for part in node.parts)
            found += [table] if any(sign in table for sign in "./:*\\~") else []
        elif _function(node) in _FILES:
            first = node.args.get("this") if name != "Anonymous" else None
            texts = list(_texts(first or (node.expressions or [None])[0]))
            found += texts
            odd = odd or ("" if texts else f"which files {_function(node)}() reads is not written out")
        elif name == "Summarize":
            found += _literals(node.args.get("this"))
        elif name in {"Copy", "Attach"}:
            parts = node.args.get("files") if name == "Copy" else [node.args.get("this")]
            texts = [text for part in parts or () for text in _texts(part)]
            found += texts
            odd = odd or ("" if texts else f"which file {name.upper()} means is not written out")
    return found, odd


def _literals(node: Any) -> list[str]:
    """Yield quoted texts, except table names."""
    return [str(each.name) for each in node.find_all(type(node)) if _name(each) == "Literal"] if node else []


def _texts(node: Any) -> Iterator[str]:
    """Yield the texts in ``node``, a text or a list of texts; none if it is computed."""
    kind = _name(node)
    if kind in {"Literal", "Identifier"}:
        yield str(node.name)
    elif kind in {"Alias", "Table", "Paren"}:
        yield from _texts(node.args.get("this"))
    elif kind == "Array":
        items = [list(_texts(item)) for item in node.expressions]
        yield from (text for item in items for text in item) if all(items) else ()


def _name(node: Any) -> str:
    return type(node).__name__


def _is(node: Any, names: tuple[str, ...]) -> bool:
    return any(each.__name__ in names for each in type(node).__mro__)
