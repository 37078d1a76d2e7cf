"""Rules as text: what is one, what is refused and in which words; rule files and kept answers."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.ports.permissions import RuleLine, RuleScope
from ba_tui.core.tool import Effect, Tool, ToolFacts
from ba_tui.permissions.answers import ProjectApprovals, bundled_rules, rules_from
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.rule import LONGEST, read_rule, read_rules
from tests.permissions.toolset import EDIT, FETCH, READ, SHELL, judge, lines, policy, tool


@pytest.mark.parametrize(
    "text",
    [
        "shell(git status)",
        "edit_file(src/**)",
        "mcp.github.*",
        "*",
        "*(@secret)",
        "@write(@guarded)",
        "x(a (b) c)",
        "query_data(write)",
        "shell(echo '(')",
    ],
)
def test_a_rule_reads_back_as_it_was_written(text: str) -> None:
    assert read_rule(text, "deny" if "*" in text else "allow").text == text


@pytest.mark.parametrize(
    ("text", "verdict", "said"),
    [
        ("shell(g*t:*)", "allow", "only be at the end"),
        ("shell(git * --stat)", "allow", "only be at the end"),
        ("python(print:*)", "deny", "patterns for code"),
        ("edit_file(src:*)", "deny", "are only for commands"),
        ("python", "allow", "would allow all code"),
        ("@execute", "allow", "would allow all code"),
        ("outside", "allow", "would let every command leave the sandbox"),
        ("outside(*)", "allow", "would let every command leave the sandbox"),
        ("outside(:*)", "allow", "would let every command leave the sandbox"),
        ("outside(g*t)", "allow", "only be at the end"),
        ("python(@sandbox)", "deny", "is for allow rules about python"),
        ("@execute(print*)", "ask", "patterns for code"),
        ("@write(src:*)", "allow", "are only for commands"),
        ("x( )", "ask", "a pattern between"),
        ("x(", "ask", "a pattern between"),
        ("x()", "ask", "a pattern between"),
        ("x(a", "ask", "a pattern between"),
        ("(a)", "ask", "the name of a tool"),
        ("two words", "ask", "the name of a tool"),
        ("x(@secrets)", "ask", "one of @secret"),
        ("", "ask", "one line"),
        ("x(\x1b[2J)", "ask", "one line"),
        ("x(a\nb)", "ask", "one line"),
        pytest.param("x(" + "a" * 600 + ")", "ask", "at most 500", id="long"),
        ("x", "maybe", "allow, ask or deny"),
        ("read_file([z-a])", "deny", "z-a in .z-a. is the wrong way round"),
        ("edit_file(src/[!9-0]*)", "ask", "9-0"),
        ("@write(x[Z-a])", "deny", "z-a"),
        ("web_fetch(https://x/[b-a]*)", "allow", "b-a"),
        ("*([z-a])", "deny", "z-a"),
        ("mcp__x__y([z-a])", "allow", "z-a"),
        ("shell(git *[z-a])", "deny", "z-a"),
        ("shell_network(domain:[z-a].com)", "allow", "name of a host"),
    ],
)
def test_what_is_no_rule_is_refused_with_its_place(text: str, verdict: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        read_rule(text, verdict, "config.yaml:7")
    assert str(refused.value).startswith("config.yaml:7: ")
    assert str(refused.value).isprintable()
    assert refused.value.hint


@pytest.mark.parametrize(
    ("text", "verdict"),
    [("outside", "deny"), ("outside(*)", "ask"), ("python", "deny"), ("@execute", "ask"), ("shell", "allow")],
)
def test_broad_rules_may_be_strict(text: str, verdict: str) -> None:
    assert read_rule(text, verdict).text == text


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("python", "python(print(1)), or python(@sandbox)."),
        ("shell(g*t:*)", "Such as shell(git status) or shell(git diff:*)."),
        ("x(", "Rules read TOOL or TOOL(PATTERN), such as edit_file(src/**) or shell(git status)."),
        ("x(domain:)", "which covers its subdomains too."),
        ("x([b-a])", "a set reads [a-z], or [!a-z] for all other characters."),
    ],
)
def test_a_refusal_says_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_rule(text, "allow")
    assert refused.value.hint.endswith(hint)
    assert str(refused.value).startswith(f"permission rule {text!r}: ")


def test_the_bundled_rules_are_good() -> None:
    rules = bundled_rules()
    assert {line.source for line in rules} == {"bundled"}
    assert ("*(@secret)", "deny") in {(line.rule, line.verdict) for line in rules}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("deny: [\n", r":2: is not valid YAML"),
        ("\nforbid: [x]\n", r":2: expected one of deny, ask, allow, got 'forbid'"),
        ("deny: shell\n", r":1: deny: expected a list of rules, got 'shell'"),
        ("deny:\n  - 5\n", r":2: deny: expected text or a group with rule, got 5"),
        ("deny:\n  - x\n  - x(\n", r":3: permission rule 'x\('"),
        ("- x\n", r":1: expected lines of `name: value`, got a list"),
    ],
)
def test_a_rule_file_is_checked_as_it_loads(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "rules.yaml").write_text(text)
    with pytest.raises(UsageError, match=said):
        rules_from(tmp_path / "rules.yaml")


def test_a_rule_file_that_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        rules_from(tmp_path / "rules.yaml")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def test_always_lasts_in_this_project_and_no_other(root: Path, ba_home: Path) -> None:
    first = policy(root)
    assert judge(first, EDIT, ".git/config") == "ask"
    first.remember("edit_file(.git/config)", "always")
    first.remember("shell(make test)", "always")
    first.remember("shell(make clean)", "session")
    again = policy(root)
    assert judge(again, EDIT, ".git/config") == "allow"
    assert judge(again, SHELL, "make test") == "allow"
    assert judge(again, SHELL, "make clean") == "ask"
    assert any(line.source.startswith(str(ba_home / "approvals.yaml:")) for line in again.rules())
    assert not list(root.iterdir())
    assert stat.S_IMODE((ba_home / "approvals.yaml").stat().st_mode) == 0o600
    other = root.parent / "other"
    other.mkdir()
    assert judge(policy(other), SHELL, "make test") == "ask"


def test_an_answer_means_the_same_file_wherever_ba_starts(root: Path, ba_home: Path) -> None:
    inner = root / "inner"
    inner.mkdir()

    def started_in(folder: Path) -> Policy:
        return Policy(Workspace(folder, (root,)), (), "default", ProjectApprovals(ba_home / "approvals.yaml", root))

    started_in(inner).remember("edit_file(a.py)", "always")
    started_in(root).remember("edit_file(b.py)", "always")
    for folder, about, expected in [
        (inner, "a.py", "allow"),
        (inner, "../a.py", "ask"),
        (inner, "b.py", "ask"),
        (inner, "../b.py", "allow"),
        (root, "inner/a.py", "allow"),
        (root, "a.py", "ask"),
        (root, "b.py", "allow"),
    ]:
        assert judge(started_in(folder), EDIT, about) == expected, (folder.name, about)


def test_two_sessions_lose_no_answer_of_each_other(root: Path) -> None:
    one, two = policy(root), policy(root)
    one.remember("shell(one)", "always")
    two.remember("shell(two)", "always")
    two.remember("shell(two)", "always")
    third = policy(root)
    assert [judge(third, SHELL, name) for name in ("one", "two", "three")] == ["allow", "allow", "ask"]
    assert sum(line.rule == "shell(two)" for line in third.rules()) == 1


def test_a_kept_answer_can_be_forgotten(root: Path, ba_home: Path) -> None:
    kept = ProjectApprovals(ba_home / "approvals.yaml", root)
    kept.add(read_rule("shell(one)", "allow"))
    assert kept.remove("shell(one)")
    assert not kept.remove("shell(one)")
    assert judge(policy(root), SHELL, "one") == "ask"


def test_a_broken_file_of_answers_stays_and_the_answer_holds_for_the_session(root: Path, ba_home: Path) -> None:
    path = ba_home / "approvals.yaml"
    path.write_text("oops: [\n")
    rules = policy(root)
    assert str(path) in rules.problems[0]
    with pytest.raises(StorageError, match=r"approvals\.yaml:2"):
        rules.remember("shell(one)", "always")
    assert judge(rules, SHELL, "one") == "allow"
    assert path.read_text() == "oops: [\n"


def test_entries_that_are_no_rules_are_told_with_their_line(root: Path, ba_home: Path) -> None:
    (ba_home / "approvals.yaml").write_text(f"{root}:\n- rule: shell(g*t:*)\n- 5\n- rule: shell(ls)\n")
    rules = policy(root)
    assert [problem.split(": ")[0].rsplit(":", 1)[1] for problem in rules.problems] == ["2", "3"]
    assert judge(rules, SHELL, "ls") == "allow"


@pytest.mark.parametrize(
    "text",
    ["shell(tr [z-a] [a-z])", "shell(test [ -f x)", "read_file(app/[[]id]/**)", "x([]-a])", "read_file(src/[ab)"],
)
def test_brackets_that_stand_for_themselves_are_no_mistake(text: str) -> None:
    assert read_rule(text, "allow").text == text


def test_a_strict_rule_that_cannot_be_read_covers_every_call_of_its_tool(root: Path) -> None:
    lines = [
        RuleLine("read_file([z-a])", "deny", "config.yaml:3"),
        RuleLine("@write(a[b-a])", "ask", "config.yaml:4"),
        RuleLine("grep([z-a])", "allow", "config.yaml:5"),
        RuleLine("(what", "deny", "config.yaml:6"),
    ]
    rules, problems = read_rules(lines)
    assert [(rule.text, rule.verdict, rule.source) for rule in rules] == [
        ("read_file", "deny", "config.yaml:3"),
        ("@write", "ask", "config.yaml:4"),
    ]
    assert [problem.partition(":")[0] for problem in problems] == ["config.yaml"] * 4
    assert problems[0].endswith("Until then the app denies every call of read_file.")
    assert problems[1].endswith("Until then the app asks about every call of @write.")
    assert "Until then" not in problems[2] + problems[3]
    own = policy(root, *lines, mode="auto")
    assert judge(own, READ, "notes.txt") == "deny"
    assert judge(own, EDIT, "notes.txt") == "ask"
    assert len(own.problems) == 4


def test_a_kept_answer_that_cannot_be_read_denies_in_doubt(root: Path, ba_home: Path) -> None:
    path = ba_home / "approvals.yaml"
    path.write_text(
        yaml.safe_dump({str(root): [{"rule": "read_file([z-a])", "verdict": "deny"}, {"rule": "x([z-a])"}]})
    )
    found, problems = ProjectApprovals(path, root).read()
    assert [(each.rule.text, each.rule.verdict) for each in found] == [("read_file", "deny")]
    assert len(problems) == 2


def test_kept_rules_are_readable_and_each_is_forgotten_alone(root: Path, ba_home: Path) -> None:
    path = ba_home / "approvals.yaml"
    first, kept = ProjectApprovals(path, root / "zoo"), ProjectApprovals(path, root)
    first.add(read_rule("edit_file(a)", "allow"))
    terms = '{"timeout": 5.0, "on_timeout": "deny"}'
    for verdict, when in (("allow", ""), ("deny", ""), ("ask", terms), ("allow", "")):
        kept.add(read_rule("shell(öl holen)", verdict, terms=when), ["shell"] if verdict == "allow" else ())

    def verdicts() -> list[tuple[str, tuple[str, ...]]]:
        return [(each.rule.verdict, each.answers) for each in kept.read()[0]]

    # The newest answer of a kind takes the place of the one before.
    assert verdicts() == [("deny", ()), ("ask", ()), ("allow", ("shell",))]
    assert path.read_text().index(str(root / "zoo")) < path.read_text().index("shell(öl holen)")
    assert kept.remove("shell(öl holen)", "ask")
    assert not kept.remove("shell(öl holen)", "ask")
    assert not kept.remove("shell(oil)")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "shell(öl holen)" in path.read_text()
    assert verdicts() == [("deny", ()), ("allow", ("shell",))]
    assert kept.remove("shell(öl holen)")
    assert (verdicts(), [each.rule.text for each in first.read()[0]]) == ([], ["edit_file(a)"])


def test_conditions_make_another_rule_of_the_same_words(root: Path, ba_home: Path) -> None:
    kept = ProjectApprovals(ba_home / "approvals.yaml", root)
    for size in (5, 6, 5):
        kept.add(read_rule("edit_file", "allow", terms=f'{{"when": {{"size": {{"max": {size}}}}}}}'), base=root)
    kept.add(read_rule("edit_file", "allow"), base=root / "inner")
    found, problems = kept.read()
    assert [(each.rule.terms.when and each.rule.terms.when[0].value, each.rule.base) for each in found] == [
        (6.0, root),
        (5.0, root),
        ((), root / "inner"),
    ]
    assert problems == []
    assert kept.path.read_text().count("from:") == 2, "once in the words at the top"


def test_an_answer_that_can_not_be_kept_holds_for_the_session(root: Path) -> None:
    rules = Policy(Workspace(root))
    scopes: tuple[tuple[RuleScope, str], ...] = (("project", "a"), ("user", "b"))
    for scope, name in scopes:
        assert rules.add(f"edit_file({name})", "allow", scope).source == "this session"
        assert judge(rules, EDIT, name) == "allow"
    for line in rules.rules():
        rules.remove(line)
    assert rules.rules() == []
    with pytest.raises(UsageError, match="not one of your rules") as refused:
        rules.remove(RuleLine("edit_file(a)", "allow", ""))
    assert refused.value.hint == "It is in another place."


NOTE = tool("mcp__notes__add.page", Effect.NETWORK, "", ())
QUERY = replace(tool("query_data", Effect.READ, "sql", ("path",)), facts=ToolFacts(target="sql", sql="sql"))


@pytest.mark.parametrize(
    ("verdict", "rule", "call", "about", "expected"),
    [
        # The name of a kind of SQL is the name of a file where a tool has no SQL.
        ("allow", "edit_file(write)", EDIT, "write", "allow"),
        ("allow", "edit_file(write)", EDIT, "a.py", "ask"),
        ("deny", "edit_file(write)", EDIT, "write", "deny"),
        ("deny", "edit_file(write)", EDIT, "a.py", "ask"),
        ("deny", "*(data/**)", QUERY, "select 1", "allow"),
        ("ask", "*(ddl)", QUERY, "select 1", "allow"),
        ("ask", "*(ddl)", QUERY, "drop table t", "ask"),
        ("deny", "*(write)", QUERY, "drop table t", "deny"),
        ("deny", "*(write)", QUERY, "select 1", "allow"),
        # What names no path is none of a class.
        ("allow", "web_fetch(@outside)", FETCH, "https://x.org", "ask"),
        ("allow", "@network", FETCH, "https://x.org", "allow"),
        ("allow", "@write", FETCH, "https://x.org", "ask"),
        ("allow", "web_fetch(https://x.org/**)", FETCH, "https://x.org/a/b", "allow"),
        ("allow", "web_fetch(https://x.org/**)", FETCH, "https://y.org/a/b", "ask"),
        ("deny", "web_fetch(HTTPS://X.org/*)", FETCH, "https://x.org/a", "deny"),
        ("deny", "web_fetch(https://x.org/*)", FETCH, "https://x.org/a/b", "ask"),
        ("allow", "mcp.notes.add.page", NOTE, "", "allow"),
        ("allow", "mcp.notes.add", NOTE, "", "ask"),
        ("allow", "mcp.*", NOTE, "", "allow"),
        # Patterns about files.
        ("deny", "*(~/notes.txt)", READ, "~/notes.txt", "deny"),
        ("deny", "*(~/notes.txt)", READ, "notes.txt", "allow"),
        ("allow", "read_file(~/*.txt)", READ, "~/notes.txt", "allow"),
        ("allow", "read_file(~/*.txt)", READ, "~/notes.md", "ask"),
        ("allow", "edit_file([!a-c]*)", EDIT, "d", "allow"),
        ("allow", "edit_file([!a-c]*)", EDIT, "b", "ask"),
        ("allow", "edit_file([]x])", EDIT, "]", "allow"),
        ("allow", "edit_file([]x])", EDIT, "a", "ask"),
        ("allow", "edit_file(a?c)", EDIT, "abc", "allow"),
        ("allow", "edit_file(a?c)", EDIT, "a/c", "ask"),
        ("allow", "edit_file(a**c)", EDIT, "a/b/c", "allow"),
        ("allow", "edit_file(a.c)", EDIT, "abc", "ask"),
        ("allow", "edit_file(./a.py)", EDIT, "a.py", "allow"),
        # Words of commands.
        ("deny", "shell(tr [z-a] x)", SHELL, "tr [z-a] x", "deny"),
        ("deny", "shell(*--force*)", SHELL, "ls; make --force x", "deny"),
        ("deny", "shell(*--force*)", SHELL, "make x", "ask"),
    ],
)
def test_what_a_rule_covers(root: Path, verdict: str, rule: str, call: Tool, about: str, expected: str) -> None:
    assert judge(policy(root, *lines(verdict, rule), bundled=False), call, about) == expected


def test_an_answer_about_a_command_counts_beside_parts_that_only_read(root: Path) -> None:
    rules = policy(root, *lines("ask", "shell(make:*)"), held=True)
    assert judge(rules, SHELL, "make all && ls") == "ask"
    rules.remember("shell(make all:*)", "session")
    assert judge(rules, SHELL, "make all && ls") == "allow"
    assert judge(rules, SHELL, "ls && make all x") == "allow"
    for other in ("make clean && ls", "make all && touch x", "make all; $X", "make $(cat x)"):
        assert judge(rules, SHELL, other) == "ask", other


def test_a_rule_of_just_the_longest_text_is_read() -> None:
    for name in ("a" * 497, "a" * 498):
        text = f"x({name})"
        if len(text) <= LONGEST:
            assert read_rule(text, "ask").text == text
        else:
            with pytest.raises(UsageError, match="at most 500 characters"):
                read_rule(text, "ask")
