"""What the rules that an answer keeps are called: no more than they cover."""

from __future__ import annotations

import pytest

from ba_tui.core.ports.permissions import EDITS, joined_rules, rule_words, split_rules


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("shell(git commit:*)", "git commit …"),
        ("shell(git push origin main)", "git push origin main"),
        ("shell", "every command"),
        ("outside(make test:*)", "make test …, outside the sandbox"),
        (joined_rules(EDITS), "all edits in this folder"),
        (joined_rules(EDITS[:2]), "edit_file on ** and write_file on **"),
        ("shell(git add:*)\nshell(git commit:*)", "git add … and git commit …"),
        ("edit_file(src/a[[]1].py)", "edit_file on src/a[1].py"),
        ("read_file(@outside)", "read_file on files outside the workspace"),
        ("python(@sandbox)", "Python in the sandbox, without network"),
        ("python(print(1))", "exactly this code"),
        ("web_fetch(domain:docs.python.org)", "web_fetch from docs.python.org and its subdomains"),
        ("web_fetch(domain:*.x.org)", "web_fetch from subdomains of x.org"),
        ("shell_network(domain:x.org)", "commands that connect to x.org and its subdomains"),
        ("web_search", "all web searches"),
        ("run_skill_script(sql/query.py)", "query.py of the skill sql, with any arguments"),
        ("query_data(write)", "calls of query_data that change data"),
        ("book_room", "book_room, with any arguments"),
        ("book_room(Paris)", "book_room on Paris, with any other arguments"),
        ("@write(@guarded)", "every tool that writes on protected files"),
        ("*(@secret)", "every tool on files with secrets"),
        ("no rule at all (", "no rule at all ("),
    ],
)
def test_words(rule: str, words: str) -> None:
    assert rule_words(rule) == words


def test_several_rules_are_lines() -> None:
    rules = ("shell(echo ')\nx')".replace("\n", " "), "edit_file(a)")
    assert split_rules(joined_rules(rules)) == rules
