"""Ordinary commands are read without trouble, and their words, files, folders and wrappers come out exactly."""

from __future__ import annotations

import pytest

from ba_tui.permissions.shell.simple_commands import ExpandedCommand
from ba_tui.permissions.shell.walker import expand_script

ORDINARY = [
    'for f in *.py; do wc -l "$f"; done',
    "ls -la | head -n 5 2>/dev/null",
    "x=$(git rev-parse HEAD) && echo $x",
    "cat <<EOF\nsome $text and $(date)\nEOF",
    "cat > f.py <<'EOF'\nprint('$(x)')\nEOF\npython f.py",
    "git commit -m \"$(cat <<'EOF'\nFix 'it' and (that)\n\nMore.\nEOF\n)\"",
    "n=$(wc -l < f); if [[ $n -gt 3 ]]; then echo $((n + 1)); fi",
    "n=0; while [ $n -lt 5 ]; do n=$((n+1)); done",
    "for i in $(seq 1 10); do echo $((i*2)); done",
    "for ((i = 0; i < 3; i++)); do echo $i; done",
    'total=0; for f in *; do s=$(stat -c %s "$f"); total=$((total + s)); done',
    'while IFS= read -r line; do echo "$line"; done < <(git ls-files)',
    'find . -type f \\( -name "*.py" -o -name "*.md" \\) -not -path "*/.git/*" | wc -l',
    "awk -F, '{print $1}' f | sort | uniq -c | sort -rn | head",
    "set -euo pipefail\ncd sub\nmake test 2>&1 | tee log.txt",
    'case "$1" in start|stop) echo a;; (*) echo b;; esac',
    'echo "${#arr[@]} ${arr[0]} ${x%.*} ${y^^} ${z//a/b} ${v:-none} ${w@Q}"',
    'arr=($(ls)); for a in "${arr[@]}"; do echo "$a"; done',
    "git stash show stash@{0}; git show HEAD@{1} HEAD^ HEAD~2",
    "[[ $x =~ ^a(b|c)+$ && ( -f y || $z == *.@(py|md) ) ]] && echo yes",
    "diff <(sort a) <(sort b); ls | tee >(grep x)",
    "nohup python x.py > log 2>&1 &",
    "trap 'rm -f lock' EXIT; trap - INT",
    "exec 3<>f 4>&- &>x",
    "cat <<A <<B\na\nA\nb\nB\n",
    'export A=1 B="$x"; declare -a l=(a b); readonly R=5; unset A',
    "echo a\\ b 'it''s' café # it's fine \"",
    'foo () { local a=$1; echo "$a"; } 2>/dev/null; foo x',
    "time make; ! grep -q x f; { ls; } | cat; (cd a && ls)",
    "if a; then b; elif c; then d; else e; fi; until f; do g; done",
    "docker ps -q | xargs -r docker inspect",
    '[ -v HOME ] && test "$a" = b',
    "command -v rg; sudo -l; env; type ls",
]


@pytest.mark.parametrize("command", ORDINARY)
def test_ordinary_commands_are_read_without_trouble(command: str) -> None:
    assert expand_script(command).trouble == ""


def texts(simple: ExpandedCommand) -> list[str | None]:
    return [word.text for word in simple.argv]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("$'\\x74\\u006fuch' \"a\"'b'c\\ d", ["touch", "abc d"]),
        ("ls ~/x '~/y' $HOME \"a$b\"", ["ls", "~/x", "~/y", "~", None]),
        ("ls a\\\nb \\\n c", ["ls", "ab", "c"]),
        (
            "mkdir {a,b}/{c,d} {1..3} {x} 'e{f,g}'",
            ["mkdir", "a/c", "a/d", "b/c", "b/d", "1", "2", "3", "{x}", "e{f,g}"],
        ),
        ("ls {$a,b}", ["ls", None]),
        ("run=ls; $run -l", ["ls", "-l"]),
        ('run="ls -l"; $run', [None]),
        ("false && run=ls; $run", [None]),
        ("run=ls; run=rm; $run", [None]),
    ],
)
def test_words_come_out_as_the_shell_makes_them(command: str, words: list[str | None]) -> None:
    assert texts(expand_script(command).commands[-1]) == words


def test_patterns_are_told() -> None:
    (simple,) = expand_script("ls *.py '*.md' a[bc] [ x?").commands
    assert [word.glob for word in simple.argv] == [False, True, False, True, False, True]


def test_files_assignments_and_wrappers_are_told() -> None:
    (simple,) = expand_script("A=1 sudo -u root env B=2 timeout 5 cat <in >>out 2>&1 >|'x y' 2>/dev/null").commands
    assert texts(simple) == ["cat"]
    assert [(name, word.text) for name, word in simple.assignments] == [("A", "1"), ("B", "2")]
    assert simple.wrappers == ("sudo", "env", "timeout")
    found = [(redirect.kind, redirect.target.text) for redirect in simple.redirects]
    assert found == [("read", "in"), ("write", "out"), ("write", "x y"), ("write", "/dev/null")]


@pytest.mark.parametrize(
    ("command", "folders"),
    [
        ("cd a && ls", {"a"}),
        ("cd a/../b/ && cd c && ls", {"b/c"}),
        ("cd a; ls", {"", "a"}),
        ("cd a || exit 1; ls", {"a"}),
        ("(cd a); ls", {""}),
        ("cd a | cat; ls", {""}),
        ("cd - && ls", {None}),
        ("cd $x && ls", {None}),
        ("pushd a && ls", {None}),
        ("cd /x && ls", {"/x"}),
        ("cd && ls", {"~"}),
        ("for d in a b; do cd a; ls; done", {None}),
        ("f() { ls; }; cd a && f", {None}),
        ("bash -c 'cd a && ls'", {"a"}),
        ("env -C a ls", {"a"}),
        ("ssh host ls", {None}),
        ("CDPATH=/ && cd a && ls", {None}),
    ],
)
def test_the_folder_is_told(command: str, folders: set[str | None]) -> None:
    assert {simple.folder for simple in expand_script(command).commands if texts(simple) == ["ls"]} == folders


def test_what_is_not_certain_shows_no_program() -> None:
    for command in ("$x CANARY", "$(echo rm) x", '"$@"', 'env "$x" ls', "x$y z", "IFS=x; y=rmxa; $y"):
        found = expand_script(command)
        assert found.trouble or any(simple.argv and simple.argv[0].text is None for simple in found.commands)


def test_a_program_of_the_folder_is_no_wrapper() -> None:
    assert [texts(simple) for simple in expand_script("./env ls; bin/sudo ls; /usr/bin/env ls").commands] == [
        ["./env", "ls"],
        ["bin/sudo", "ls"],
        ["ls"],
    ]


def test_what_was_found_before_the_trouble_is_told() -> None:
    found = expand_script("rm x; eval $y; ls")
    assert found.trouble
    assert [texts(simple)[0] for simple in found.commands] == ["rm", "eval", "ls"]


@pytest.mark.parametrize("size", [300, 200_001])
def test_too_deep_or_too_long_is_trouble(size: int) -> None:
    assert expand_script("$(" * size + "ls" + ")" * size).trouble
    assert expand_script("echo " + "x" * 200_001).trouble
