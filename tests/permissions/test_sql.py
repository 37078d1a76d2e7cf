"""What SQL would do, and that a call goes by that and not by what its tool usually does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ba_tui.core.tool import Effect, Tool, ToolFacts
from ba_tui.permissions.conditions import KINDS
from ba_tui.permissions.sql import classify
from ba_tui.permissions.verdicts import Ask, Deny, JudgedCall
from tests.permissions.toolset import judge, lines, policy, tool

QUERY: Tool = replace(tool("query_data", Effect.READ, "sql", ()), facts=ToolFacts(target="sql", sql="sql"))


@pytest.mark.parametrize(
    "text",
    [
        "select 1",
        "SELECT a, sum(b) OVER (PARTITION BY c) FROM t GROUP BY ALL ORDER BY 1 LIMIT 5 -- ; drop table t",
        "from t",
        "from 'data/a.csv' select a",
        "select * from read_parquet(['a.parquet', 'b.parquet'])",
        "with a as (select 1) select * from a union all values (2)",
        "pivot t on a using sum(b)",
        "select 'drop table t; delete from t' as words, \"insert\" from t",
        "describe t",
        "summarize t",
        "show tables",
        "pragma table_info('t')",
        "explain select 1",
        "explain delete from t",
        "explain analyze select 1",
        "select regexp_matches(url, 'https://x.org/.*') from t /* insert into t */",
        "select * from range(3), unnest([1, 2])",
        "select 1; select 2;",
        "select pg_typeof(1), pg_relation_size('t'), loader, executive from t",
    ],
)
def test_reads(text: str) -> None:
    found = classify(text)
    assert (found.kinds, found.network, found.trouble) == ({"read"}, False, "")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("insert into t select 1", "write"),
        ("update t set a = 1", "write"),
        ("/* select */ delete from t", "write"),
        ("select 1; delete from t", "write"),
        ("with x as (delete from t returning *) select * from x", "write"),
        ("merge into t using s on t.a = s.a when matched then delete", "write"),
        ("copy t to 'x.csv'", "write"),
        ("copy (select 1) to 'x.parquet' (format parquet)", "write"),
        ("copy t from 'x.csv'", "write"),
        ("explain analyze delete from t", "write"),
        ("explain (analyze) insert into t values (1)", "write"),
        ("truncate t", "write"),
        ("create table t as select 1", "ddl"),
        ("create or replace temp view v as select 1", "ddl"),
        ("select * into x from t", "ddl"),
        ("drop table t", "ddl"),
        ("alter table t add column a int", "ddl"),
        ("attach 'x.db' as y", "ddl"),
        ("detach y", "ddl"),
        ("install httpfs", "ddl"),
        ("load httpfs", "unknown"),
        ("pragma enable_external_access = true", "unknown"),
        ("set memory_limit = '1GB'", "unknown"),
        ("reset all", "unknown"),
        ("call pragma_version()", "unknown"),
        ("begin", "unknown"),
        ("use x", "unknown"),
        ("vacuum", "unknown"),
        ("export database 'x'", "unknown"),
        ("prepare p as delete from t", "unknown"),
        ("execute p", "unknown"),
        ("create secret x (type s3)", "unknown"),
        ("do $$ begin end $$", "unknown"),
        ("select getenv('KEY')", "unknown"),
        ("select * from query('delete from t')", "unknown"),
        ("select * from postgres_query('p', 'delete from t')", "unknown"),
        ("select * from anything_else(1)", "unknown"),
        ("select pg_read_file('/etc/passwd')", "unknown"),
        ("select nextval('s')", "unknown"),
        ("select query_to_xml('delete from t', true, true, '')", "unknown"),
        ("select lo_put(1, 2, 'x')", "unknown"),
        ("select pg_notify('a', 'b')", "unknown"),
        ("from read_csv('cat x |')", "unknown"),
        ("show all", "unknown"),
        ("select * from read_csv('a' || 'b')", "unknown"),
        ("copy (select 1) to getvariable('x')", "unknown"),
        ("select 'a\\' ; drop table t --'", "unknown"),
        ("select 1 /*! ; drop table t */", "unknown"),
        ("select 'open", "unknown"),
        ("not sql at all", "unknown"),
        (".shell ls", "unknown"),
        ("", "unknown"),
        ("-- nothing", "unknown"),
        ("select 1 {# ; drop table t; #}", "unknown"),
        ("(" * 3000 + "select 1" + ")" * 3000, "unknown"),
        ("select 1 -- " + "x" * 100_000, "unknown"),
    ],
)
def test_what_may_do_more_than_read(text: str, kind: str) -> None:
    assert max(classify(text).kinds, key=KINDS.index, default="unknown") == kind


@pytest.mark.parametrize(
    "text",
    [
        "select * from read_csv('http://x.org/a.csv')",
        "from 's3://bucket/a.parquet'",
        "select * from read_parquet(['a', 'https://x.org/b'])",
        "attach 'postgres:dbname=x' as p",
        "attach 'host=db' as p (type postgres)",
        "install httpfs from 'http://x.org'",
        'from "https://x.org/a".csv',
    ],
)
def test_what_reaches_further(text: str) -> None:
    assert classify(text).network


def test_the_files_it_names() -> None:
    assert classify("select * from 'a.csv' join read_json('b/c.json') using (x)").files == ("a.csv", "b/c.json")
    assert classify("copy (from 'a.csv') to '../out.csv'").files == ("../out.csv", "a.csv")
    assert classify("attach ':memory:'").files == ()
    for text in ('from "/a/b".csv', 'select (from "/a/b"."csv")', 'summarize "/a/b".csv'):
        assert classify(text).files == ("/a/b.csv",), text


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


def test_a_query_is_judged_by_what_it_does(root: Path) -> None:
    rules = policy(root)
    assert judge(rules, QUERY, "select * from 'a.csv'") == "allow"
    for text in ("drop table t", "copy t to 'x.csv'", "what?", "from 'http://x.org/a.csv'", "from '../a.csv'"):
        assert judge(rules, QUERY, text) == "ask", text
    assert judge(policy(root, mode="plan"), QUERY, "delete from t") == "deny"
    assert judge(policy(root, mode="auto"), QUERY, "delete from t") == "allow"
    assert judge(policy(root, mode="auto"), QUERY, "load 'x.so'") == "ask"
    assert judge(policy(root, mode="accept-edits"), QUERY, "copy t to 'x.csv'") == "ask"


def test_secrets_are_not_read_by_queries(root: Path) -> None:
    rules = policy(root, *lines("allow", "query_data"), mode="auto")
    for text in (
        "from read_text('.env')",
        "copy (select 1) to '.env'",
        "attach '~/.ssh/id_rsa'",
        'from "sub/.env.local"',
        "summarize '.env'",
    ):
        assert isinstance(rules.judge(JudgedCall(QUERY, {"sql": text}, root)), Deny), text


def test_rules_about_kinds_of_sql(root: Path) -> None:
    writing = policy(root, *lines("allow", "query_data(write)"))
    assert judge(writing, QUERY, "insert into t select * from s") == "allow"
    assert judge(writing, QUERY, "insert into t values (1); drop table t") == "ask"
    assert judge(writing, QUERY, "insert into t from 'http://x.org/a.csv'") == "ask"
    assert judge(writing, QUERY, "copy t to '/tmp/x.csv'") == "ask"
    denied = policy(root, *lines("deny", "query_data(write)"))
    assert [judge(denied, QUERY, text) for text in ("select 1", "delete from t", "drop table t", "huh")] == [
        "allow", "deny", "deny", "deny",
    ]  # fmt: skip
    asked = policy(root, *lines("ask", "query_data(read)"))
    assert judge(asked, QUERY, "select 1") == "ask"


def test_what_is_offered_for_a_query(root: Path) -> None:
    rules = policy(root)

    def offered(text: str) -> str | None:
        judged = rules.judge(JudgedCall(QUERY, {"sql": text}, root))
        assert isinstance(judged, Ask)
        return judged.rule

    assert offered("delete from t") == "query_data(write)"
    assert offered("create table t (a int)") == "query_data(ddl)"
    assert offered("set x = 1") is None
    assert offered("from 'http://x.org/a.csv'") is None
