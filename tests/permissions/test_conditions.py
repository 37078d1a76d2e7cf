"""Conditions on arguments, domains and MCP servers in rules, and the problems of rules that can't be read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.tool import Effect
from ba_tui.permissions.conditions import Misfit, read_terms, terms_of, terms_text
from ba_tui.permissions.rule import read_line
from ba_tui.permissions.verdicts import JudgedCall
from tests.permissions.toolset import EDIT, FETCH, SHELL, judge, lines, policy, tool, verdict

SLOW = {"type": "object", "properties": {"command": {}, "timeout": {"type": "number", "default": 120}}}
TIMED = replace(SHELL, input_schema=SLOW)


def said(verdict: str, rule: str, **terms: Any) -> RuleLine:
    return RuleLine(rule, verdict, "test", terms=json.dumps(terms))


@pytest.mark.parametrize(
    ("when", "args", "asked"),
    [
        ({"timeout": {"min": 60}}, {"timeout": 60}, True),
        ({"timeout": {"min": 60}}, {"timeout": 59.9}, False),
        ({"timeout": {"min": 60}}, {}, True),
        ({"timeout": {"max": 60}}, {}, False),
        ({"timeout": {"min": 10, "max": 60}}, {"timeout": "30"}, True),
        ({"timeout": {"min": 60}}, {"timeout": "soon"}, True),
        ({"timeout": {"min": 60}}, {"timeout": True}, True),
        ({"command": {"regex": "^make"}}, {}, True),
        ({"command": {"regex": "^ls"}}, {}, False),
        ({"command": {"equals": "make all"}}, {}, True),
        ({"command": {"equals": "make"}}, {}, False),
        ({"timeout": {"equals": 5}}, {"timeout": 6}, False),
        ({"background": {"equals": True}}, {"background": True}, True),
        ({"background": {"equals": True}}, {"background": 1}, False),
        ({"background": {"equals": True}}, {}, False),
        ({"env.MODE": {"equals": "x"}}, {"env": {"MODE": "x"}}, True),
        ({"timeout": {"min": 60}, "command": {"regex": "^ls"}}, {}, False),
    ],
)
def test_all_conditions_must_hold(tmp_path: Path, when: Any, args: dict[str, Any], asked: bool) -> None:
    rules = policy(tmp_path, said("ask", "shell", when=when), *lines("allow", "shell(make all)"))
    judged = rules.judge(JudgedCall(TIMED, {"command": "make all", **args}, tmp_path))
    assert verdict(judged) == ("ask" if asked else "allow")


def test_conditions_on_paths_hold_for_commands_too(tmp_path: Path) -> None:
    rules = policy(tmp_path, said("deny", "write_file", when={"path": {"regex": r"\.lock$"}}), mode="auto")
    assert judge(rules, SHELL, "echo x > poetry.lock") == "deny"
    assert judge(rules, SHELL, "echo x > poetry.txt") == "ask"
    assert judge(rules, SHELL, "cat poetry.lock") == "allow"


def test_doubt_never_allows(tmp_path: Path) -> None:
    slow = {"path": {"regex": "(a|a)*(a|a)*(a|a)*$^b"}}
    path = "a" * 200 + "b"
    assert judge(policy(tmp_path, said("allow", "edit_file", when=slow)), EDIT, path) == "ask"
    assert judge(policy(tmp_path, said("deny", "edit_file", when=slow)), EDIT, path) == "deny"
    many = {"size": {"max": 5}}
    allowed = policy(tmp_path, said("allow", "edit_file", when=many))
    assert verdict(allowed.judge(JudgedCall(EDIT, {"path": "a", "size": "?"}, tmp_path))) == "ask"
    assert verdict(allowed.judge(JudgedCall(EDIT, {"path": "a", "size": 5}, tmp_path))) == "allow"
    nested = policy(tmp_path, said("allow", "edit_file", when={"a.b": {"equals": "x"}}))
    both = {"path": "a", "a.b": "x", "a": {"b": "y"}}
    assert verdict(nested.judge(JudgedCall(EDIT, both, tmp_path))) == "ask", "two arguments go by that name"
    assert verdict(nested.judge(JudgedCall(EDIT, {"path": "a", "a": {"b": "x"}}, tmp_path))) == "allow"


@pytest.mark.parametrize(
    ("terms", "complaint"),
    [
        ({"then": 1}, "then: unknown"),
        ({"when": []}, "when: expected a group"),
        ({"when": {"a": 5}}, r"when\.a: expected one of regex"),
        ({"when": {"a": {"like": "x"}}}, r"when\.a\.like: unknown"),
        ({"when": {"a": {"regex": "("}}}, r"when\.a\.regex: expected a regular expression"),
        ({"when": {"a": {"regex": "x" * 501}}}, r"when\.a\.regex: expected"),
        ({"when": {"a": {"min": "5"}}}, r"when\.a\.min: expected a number, got '5'"),
        ({"when": {"a": {"max": True}}}, r"when\.a\.max: expected a number"),
        ({"when": {"a": {"equals": [1]}}}, r"when\.a\.equals: expected"),
        ([], "expected a group of terms, got \\[\\]"),
        ({"when": {"a": {}}}, r"when\.a: expected one of regex"),
        ({"when": {"a": {"regex": ""}}}, r"when\.a\.regex: expected an expression of at most 500"),
        ({"when": {"a": {"regex": 5}}}, r"when\.a\.regex: expected an expression"),
        ({"when": {"a": {"max": 10**400}}}, r"when\.a\.max: expected a number, got 1000"),
        ({"when": {"a": {"equals": None}}}, r"when\.a\.equals: expected"),
        ({"timeout": 86_400.5}, "timeout: expected seconds from above 0 to 86400, got 86400.5"),
        ({"timeout": None}, "timeout: expected seconds"),
        ({"timeout": 0}, "timeout: expected seconds"),
        ({"timeout": "5"}, "timeout: expected seconds"),
        ({"on_timeout": "deny"}, "on_timeout: expected a timeout"),
        ({"timeout": 5, "on_timeout": "yes"}, "on_timeout: expected one of deny, allow, escalate"),
    ],
)
def test_terms_that_make_no_sense_are_told_by_key(tmp_path: Path, terms: Any, complaint: str) -> None:
    with pytest.raises(Misfit, match=complaint):
        read_terms(json.dumps(terms))
    rules = policy(tmp_path, RuleLine("shell", "ask", "rules.yaml:7", terms=json.dumps(terms)))
    assert rules.problems[0].startswith("rules.yaml:7: permission rule 'shell': ")


def test_what_is_just_within_the_limits_of_terms_is_taken() -> None:
    for terms in ({"timeout": 0.5}, {"timeout": 86_400}, {"when": {"a": {"regex": "x" * 500}}}):
        assert json.loads(terms_text(read_terms(json.dumps(terms)))).items() >= terms.items()
    for length, told in ((58, "'" + "y" * 58 + "'"), (59, "'" + "y" * 58 + "…")):
        with pytest.raises(Misfit) as refused:
            read_terms(json.dumps({"when": {"a": {"min": "y" * length}}}))
        assert str(refused.value).endswith(f"got {told}")


def test_terms_are_the_same_text_in_whichever_order_they_are_given() -> None:
    one, other = {"rule": "x", "timeout": 5, "when": {"ä": {"min": 1}}}, {"when": {"ä": {"min": 1}}, "timeout": 5}
    assert terms_of(one) == terms_of(other) == '{"timeout": 5, "when": {"ä": {"min": 1}}}'


@pytest.mark.parametrize("size", ["nan", "inf", "-inf", "1e999", 10**400, "", "five", [5], None, True])
def test_what_is_no_number_is_in_doubt(tmp_path: Path, size: Any) -> None:
    when = {"size": {"min": 1, "max": 9}}
    for verdict_, expected in (("allow", "ask"), ("deny", "deny")):
        rules = policy(tmp_path, said(verdict_, "edit_file", when=when), mode="default")
        judged = verdict(rules.judge(JudgedCall(EDIT, {"path": "a", "size": size}, tmp_path)))
        # An argument that is not given meets no condition.
        assert judged == ("ask" if size is None else expected)


def test_terms_are_written_as_they_were_read() -> None:
    terms = {"on_timeout": "escalate", "timeout": 5.0, "when": {"a": {"equals": "x", "regex": "y"}, "b": {"min": 1.0}}}
    assert json.loads(terms_text(read_terms(json.dumps(terms)))) == terms
    assert terms_text(read_terms("")) == ""


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (said("allow", "now", timeout=5), "only ask rules wait"),
        (said("deny", "now", timeout=5, on_timeout="deny"), "only ask rules wait"),
        (
            RuleLine("now", "ask", "x", layer="project", terms='{"timeout": 1, "on_timeout": "allow"}'),
            "a project can't",
        ),
        (RuleLine("on_plan_change", "ask", "x.yaml:3"), "x.yaml:3: .* on_plan_change is not available yet"),
        (RuleLine("on_error(high)", "ask", "x.yaml:3"), "x.yaml:3: .* on_error is not available yet"),
        (RuleLine("after_subtask", "ask", "x.yaml:3"), "x.yaml:3: .* after_subtask is not available yet"),
        (RuleLine("web_fetch(domain:)", "allow", "x"), "the name of a host"),
        (RuleLine("web_fetch(domain:https://x.org)", "allow", "x"), "the name of a host"),
        (RuleLine("web_fetch(domain:*)", "allow", "x"), "the name of a host"),
    ],
)
def test_rules_that_can_not_be_are_refused(line: RuleLine, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        read_line(line)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://docs.python.org/3/", "allow"),
        ("http://DOCS.python.org.:8080/a?b=c@d", "allow"),
        ("https://old.docs.python.org/", "allow"),
        ("https://ｄocs.python.org/", "allow"),
        ("https://python.org/", "ask"),
        ("https://evildocs.python.org/", "ask"),
        ("https://docs.python.org.evil.org/", "ask"),
        ("https://docs.python.org@evil.org/", "ask"),
        ("https://evil.org/docs.python.org", "ask"),
        ("https://evil.org?docs.python.org", "ask"),
        ("https://evil.org#@docs.python.org", "ask"),
        ("https://evil.org\\@docs.python.org/", "ask"),
        ("https://docs.python.org\\.evil.org/", "ask"),
        ("https://docs.python.org/ https://evil.org", "ask"),
        ("ftp://docs.python.org/", "ask"),
        ("docs.python.org", "ask"),
        ("https://[docs.python.org/", "ask"),
    ],
)
def test_a_domain_covers_its_own_hosts(tmp_path: Path, address: str, expected: str) -> None:
    assert judge(policy(tmp_path, *lines("allow", "web_fetch(domain:docs.python.org)")), FETCH, address) == expected


def test_a_denied_domain_is_denied_however_it_is_written(tmp_path: Path) -> None:
    denied = policy(tmp_path, *lines("deny", "*(domain:*.evil.org)"), *lines("allow", "web_fetch"))
    for address in ("https://evil.org", "https://a.EVIL.org./", "https://x.org@evil.org/", "http://evil%2eorg",
                    "https://x.org\\@evil.org", "//evil.org:80/x"):  # fmt: skip
        assert judge(denied, FETCH, address) == "deny", address
    assert judge(denied, FETCH, "https://good.org/evil.org") == "allow"
    below = policy(tmp_path, *lines("allow", "web_fetch(domain:*.x.org)"))
    assert [judge(below, FETCH, f"https://{host}/") for host in ("a.x.org", "x.org")] == ["allow", "ask"]


def test_the_tools_of_a_server(tmp_path: Path) -> None:
    issue, other = (tool(f"mcp__{name}", Effect.NETWORK, "", ()) for name in ("github__create_issue", "gitlab__search"))
    for rule in ("mcp.github.*", "mcp.github", "mcp.github.create_issue", "mcp.*", "mcp__github__*"):
        rules = policy(tmp_path, *lines("allow", rule))
        assert judge(rules, issue, "") == "allow", rule
        assert judge(rules, other, "") == ("allow" if rule == "mcp.*" else "ask"), rule
    assert judge(policy(tmp_path, *lines("allow", "mcp.git")), issue, "") == "ask"
