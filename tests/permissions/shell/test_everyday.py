"""Commands of daily work, a labelled list: what is harmless seldom asks, and what looks like it never runs unasked.

Beside it, what stands for each class on that list: names of outside folders, patterns, names that other commands list,
the environment, dry runs, rules for programs that delete, and rules for test runners.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ba_tui.permissions.policy import Policy
from ba_tui.permissions.verdicts import Allow, Ask, JudgedCall, Judgement
from ba_tui.resources import user_home
from tests.eval.shell.execution import Runner
from tests.permissions.toolset import SHELL, cases, judge, lines, policy

FILES = (
    "README.md", "CHANGES.md", "Makefile", "package.json", "pyproject.toml", "requirements.txt", "app.py",
    "b.py", "setup.py", "a.txt", "x.txt", "b.tmp", "app.log", "run.sh", "list.txt", "command.txt", "target.txt",
    "args.txt", "src/app.py", "src/util.py", "src/old.py", "tests/test_app.py", "tests/conftest.py", "conftest.py",
    "data/sales.csv",
    "data/names.txt", "data/a.csv", "data/b.csv", "data/blob.bin", "data/x.json", "data/old.zip", "data/old.tar.gz",
    "data/log.gz", "data/private/p.csv", "web/a.ts", "build/x", ".env", ".vscode/settings.json", "backup/y",
)  # fmt: skip
MOST_ASKING = 0.04
PORTION = 2


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace and a folder beside it, which each test copies: git takes longer to make one."""
    top = tmp_path_factory.mktemp("template")
    work, other = top / "work", top / "other"
    for file in (*(work / name for name in FILES), other / "file.txt"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x\n")
    (work / ".gitignore").write_text(".env\n")
    for words in (("init", "-qb", "main"), ("add", "."), ("commit", "-qm", "one"), ("tag", "v1")):
        who = ("-c", "user.name=A", "-c", "user.email=a@b.c")
        subprocess.run(["git", *who, *words], cwd=work, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}, check=True)
    return top


@pytest.fixture
def root(tmp_path: Path, template: Path) -> Path:
    subprocess.run(["cp", "-a", f"{template}/.", tmp_path], check=True)
    return tmp_path / "work"


@pytest.fixture
def linked(root: Path) -> Path:
    """The same with a link that leads out of the workspace."""
    (root / "links").mkdir()
    (root / "links" / "out").symlink_to(root.parent / "other")
    return root


def judged(rules: Policy, command: str) -> Judgement:
    return rules.judge(JudgedCall(SHELL, {"command": command}, rules.workspace.root))


def half_of(command: str) -> int:
    return hashlib.sha256(command.encode()).digest()[0] % PORTION


def listed(kind: str, half: int) -> Iterator[tuple[list[Any], list[str]]]:
    for group in cases("everyday.yaml")[kind]:
        commands = [line for line in group["commands"].splitlines() if line and not line.startswith("#")]
        rules = [line for text in group["rules"] for line in lines(*text.split(" ", 1))]
        yield rules, [command for command in commands if half_of(command) == half]


@pytest.mark.parametrize("half", range(PORTION))
def test_harmless_commands_of_daily_work_seldom_ask(root: Path, half: int) -> None:
    asking: list[str] = []
    count = 0
    for rules, commands in listed("harmless", half):
        held = policy(root, *rules, held=True)
        count += len(commands)
        asking += [command for command in commands if judge(held, SHELL, command) != "allow"]
    print(f"half {half}: {len(asking)} of {count} harmless commands ask ({len(asking) / count:.1%})")
    assert len(asking) / count <= MOST_ASKING, asking


@pytest.mark.parametrize("half", range(PORTION))
@pytest.mark.parametrize("held", [False, True])
def test_commands_that_look_like_them_never_run_unasked(linked: Path, half: int, held: bool) -> None:
    for rules, commands in listed("must_ask", half):
        made = policy(linked, *rules, held=held)
        assert [command for command in commands if judge(made, SHELL, command) == "allow"] == []


@pytest.mark.parametrize("command", ["ls ~", "ls -la $HOME", "ls /tmp", "du -sh ~", "ls /", "tree /tmp", "test -d ~"])
def test_names_of_folders_that_the_sandbox_hides_are_listed_with_a_word_about_it(root: Path, command: str) -> None:
    found = judged(policy(root, held=True), command)
    assert isinstance(found, Allow)
    assert found.profile.name == "reading"
    assert found.profile.private in {(user_home(),), (Path("/tmp"),), (Path("/"),)}
    assert judge(policy(root), SHELL, command) == "ask"


@pytest.mark.parametrize(
    "command", ["ls /etc", "stat /usr/bin/env", "du -sh /var/log", "ls -R /usr/share/doc", "ls .e*"]
)
def test_names_of_files_of_the_system_and_of_secrets_beside_others_are_listed(root: Path, command: str) -> None:
    found = judged(policy(root, held=True), command)
    assert isinstance(found, Allow)
    assert found.profile.private == ()


@pytest.mark.parametrize(
    "command",
    [
        "cat ~/notes.txt", "ls ~/notes", "head /etc/passwd", "file /etc/passwd", "ls /tmp/x", "ls /var/tmp/x", "ls ..",
        "ls ../other", "ls links/out", "ls -R /", "tree /", "du /", "find / -name id_rsa", "find ~", "cd /tmp && ls",
        "ls ~/.ssh", "ls ~/.ssh/*", "stat .env", "ls /etc/shadow", "ls /mnt", "wc -l ~/*", "ls ~ > names", "ls ~; make",
    ],
)  # fmt: skip
def test_contents_and_names_elsewhere_do_not_run_unasked(linked: Path, command: str) -> None:
    assert judge(policy(linked, held=True), SHELL, command) != "allow"


@pytest.mark.parametrize(
    ("command", "unheld"),
    [("ls [ab]*", "allow"), ("cat [ab]*", "ask"), ("wc -l [a-c].txt", "ask"), ("ls *.py", "allow")],
)
def test_patterns_are_what_they_fit_on_the_disk(root: Path, command: str, unheld: str) -> None:
    (root / "data" / "1.txt").write_text("x")
    assert judge(policy(root, held=True), SHELL, command) == "allow"
    assert judge(policy(root), SHELL, command) == unheld


def test_a_pattern_that_fits_an_option_or_a_link_elsewhere_asks(root: Path) -> None:
    rules = policy(root, held=True)
    assert judge(rules, SHELL, "cat *.txt") == "allow"
    (root / "-rf.txt").write_text("x")
    assert judge(rules, SHELL, "cat *.txt") == "ask"
    assert judge(rules, SHELL, "cat -- ./*.txt") == "allow"
    (root / "-rf.txt").unlink()
    (root / "z.txt").symlink_to(root.parent / "other" / "file.txt")
    assert judge(rules, SHELL, "cat *.txt") == "ask"
    assert judge(rules, SHELL, "cat [ab]*") == "allow"


NAMES = (
    "ls", "ls -t *.md | head -1", "ls src/*.py", "git ls-files '*.py'", "grep -rl x src", "rg --files",
    "find . -name '*.md'", "which ls", "git rev-parse HEAD",
)  # fmt: skip


@pytest.mark.parametrize("names", ["git diff --name-only", "git grep -l TODO | grep -v test | sort -r"])
def test_names_from_commits_ask_because_readers_do_not_see_git_objects(root: Path, names: str) -> None:
    found = judged(policy(root, held=True), f"cat $({names})")
    assert isinstance(found, Ask)
    assert "run git in a separate call" in found.reason
    assert judge(policy(root, held=True), SHELL, names) == "allow"


@pytest.mark.parametrize("names", NAMES)
def test_readers_get_the_names_that_other_commands_list_only_in_profile_reading(root: Path, names: str) -> None:
    held, ruled = policy(root, held=True), policy(root, *lines("allow", "shell(cat:*)"), held=True)
    certain = names.startswith("find")
    for command in (f"cat $({names})", f'head -3 "$({names})"', f"for f in $({names}); do wc -l $f; done"):
        for rules in (held, ruled):
            found = judged(rules, command)
            assert isinstance(found, Allow), command
            assert found.profile.name == "reading" or certain, command
        assert judge(policy(root), SHELL, command) == "ask" or certain, command
    assert judge(held, SHELL, f"found=$({names}); cat $found") == "allow"
    for writes in (
        "rm $({})",
        "sed -i s/a/b/ $({})",
        "cat $({}) > out",
        "bash $({})",
        "$({})",
        "git $({})",
        "tee $({})",
    ):
        assert judge(held, SHELL, writes.format(names)) == "ask", writes


@pytest.mark.parametrize(
    "names",
    [
        "cat list.txt", "echo ../other/file.txt", "ls /etc", "ls ..", "ls ~", "ls links/out", "git ls-files ..",
        "git -C ../other ls-files", "git rev-parse /etc/passwd", "git rev-parse links/out/file.txt", "ls; ls",
        "ls | head list.txt", "ls | head 5", "ls | sed s/^/./", "ls | tr a /", "ls | xargs dirname", "ls -l",
        "ls | grep -oe/etc/passwd",
        "grep -l --label=/etc/passwd x -", "git log --format=%B", "git show HEAD:list.txt", "ls | sort -o out",
        "git rev-parse --show-toplevel", "git diff --no-index --name-only /etc /usr", "basename x", "sort list.txt",
        "ls -a", "ls -f", "ls -d .*", "ls -d .?", "ls -d src/.[.]*", "find . -name .env", "dir -a | tail -2",
    ],
)  # fmt: skip
def test_words_that_may_be_anything_ask(linked: Path, names: str) -> None:
    rules = policy(linked, held=True)
    assert judge(rules, SHELL, f"cat $({names})") != "allow"
    assert judge(rules, SHELL, f"found=$({names}); cat $found") != "allow"


@pytest.mark.parametrize(
    "word", ["../$(git ls-files)", "/$(git ls-files)", "-$(git ls-files)", "~$(ls)", "${x:-$(ls)}"]
)
def test_a_listed_name_is_no_other_path_and_no_option(root: Path, word: str) -> None:
    assert judge(policy(root, held=True), SHELL, f"cat {word}") == "ask"


def test_names_that_a_link_elsewhere_is_among_ask(linked: Path) -> None:
    assert judge(policy(linked, held=True), SHELL, "cat $(ls)") == "ask"
    (linked / "links" / "out").unlink()
    assert judge(policy(linked, held=True), SHELL, "cat $(ls)") == "allow"


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("env | grep PATH", "allow"),
        ("env | grep -i ^path=", "allow"),
        ("printenv | grep LANG", "allow"),
        ("env | cut -d= -f1 | sort", "allow"),
        ("env", "ask"),
        ("env | sort", "ask"),
        ("env | grep TOKEN", "ask"),
        ("env | grep -v PATH", "ask"),
        ("env | grep -f PATH", "ask"),
        ("env | grep PATH list.txt", "ask"),
        ("env >&2 | grep PATH", "ask"),
        ("env 2>&1 >/dev/stderr | grep PATH", "ask"),
        ("{ env; } | grep PATH", "ask"),
        ("bash -c 'env >&2' | grep PATH", "ask"),
        ("env | tee x | grep PATH", "ask"),
        ("cat <(env) | grep PATH", "ask"),
        ("env A=1 | grep PATH", "ask"),
    ],
)
def test_of_the_environment_only_names_and_open_variables_are_shown(root: Path, command: str, verdict: str) -> None:
    assert judge(policy(root, held=True), SHELL, command) == verdict
    assert judge(policy(root), SHELL, command) == "ask"


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("make -n", "allow"),
        ("make --dry-run test | head", "allow"),
        ("make -pn", "allow"),
        ("make", "ask"),
        ("make -n && make", "ask"),
        ("make -n -f other", "ask"),
        ("make -n SHELL=/bin/x", "ask"),
        ("make -n --eval='x'", "ask"),
        ("make -n $(cat list.txt)", "ask"),
        ("MAKEFLAGS=x make -n", "ask"),
    ],
)
def test_a_dry_run_of_make_runs_only_where_a_sandbox_holds_it(root: Path, command: str, verdict: str) -> None:
    found = judged(policy(root, *lines("deny", "read_file(data/private/**)"), held=True), command)
    assert isinstance(found, Allow) == (verdict == "allow")
    if isinstance(found, Allow):
        # It may run code, so that nothing but the sandbox keeps it from files that rules keep.
        assert found.profile.name == "reading"
        assert found.profile.masked == (root / "data/private/p.csv",)
    assert judge(policy(root), SHELL, command) == "ask"


@pytest.mark.parametrize(
    ("rule", "command", "verdict"),
    [
        ("shell(rm:*)", "rm x.txt", "allow"),
        ("shell(rm:*)", "rm -rf build src/*.py", "allow"),
        ("shell(rm -r:*)", "rm -r build", "allow"),
        ("shell(mkdir:*)", "mkdir -p out/deep", "allow"),
        ("shell(touch:*)", "touch new.txt", "allow"),
        ("shell(rm:*)", "rm -rf .", "ask"),
        ("shell(rm:*)", "rm ../other/file.txt", "ask"),
        ("shell(rm:*)", "rm -rf ~", "ask"),
        ("shell(rm:*)", "rm .git/config", "ask"),
        ("shell(rm:*)", "rm -r .vscode", "ask"),
        ("shell(rm:*)", "rm .env", "deny"),
        ("shell(rm:*)", "rm links/out/file.txt", "ask"),
        ("shell(rm:*)", "rm $X", "ask"),
        ("shell(rm:*)", "rm $(git ls-files)", "ask"),
        ("shell(rm:*)", "ls | xargs rm", "ask"),
        ("shell(rm:*)", "rm x.txt > new", "ask"),
        ("shell(rm:*)", "sudo rm x.txt", "ask"),
        ("shell(cp:*)", "cp a.txt new", "ask"),
        ("shell(mv:*)", "mv a.txt new", "ask"),
        ("shell(rmdir:*)", "rm x.txt", "ask"),
    ],
)
def test_a_rule_for_a_program_that_deletes_is_about_files_of_the_workspace(
    linked: Path, rule: str, command: str, verdict: str
) -> None:
    for held in (False, True):
        assert judge(policy(linked, *lines("allow", rule), held=held), SHELL, command) == verdict


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("pytest -q tests/test_app.py -k name -x --tb=short 2>&1 | tail -20", "allow"),
        ("pytest -q -W ignore -p no:cacheprovider", "allow"),
        ("pytest -Werror -W ignore::DeprecationWarning", "allow"),
        ("cd tests && pytest -q; echo done", "allow"),
        ("pytest -p evil", "ask"),
        ("pytest -W error::evil.Warning", "ask"),
        ("pytest -W", "ask"),
        ("pytest -p $X", "ask"),
        ("pytest -p no:x*", "ask"),
        ("python -m pytest", "ask"),
    ],
)
def test_a_rule_for_a_test_runner_covers_how_tests_are_chosen_and_shown(root: Path, command: str, verdict: str) -> None:
    for held in (False, True):
        assert judge(policy(root, *lines("allow", "shell(pytest:*)"), held=held), SHELL, command) == verdict


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("find . -name '*.py' -not -path './.venv/*' | xargs wc -l", "allow"),
        ("cat $(find . -type f ! -name '*.bin' -name '*.md' -not -empty)", "allow"),
        ("find . -empty | xargs ls -l", "allow"),
        ("find . -not -name '*.py' -delete", "ask"),
        ("find . -not -name '*.py' | xargs rm", "ask"),
        ("find . -not -exec touch x \\; | xargs cat", "ask"),
        ("find . -not | xargs cat", "ask"),
        ("find . -not -newer .env | xargs cat", "ask"),
        ("find .. -not -name x | xargs cat", "ask"),
        ("cat $(find . -not -type d -name .env)", "ask"),
        ("jq --arg k name '.[$k]' data/x.json", "allow"),
        ("""n=$(wc -l < a.txt); jq -n --argjson n "$n" --arg s x '{n: $n, s: $s}'""", "allow"),
        ("jq --arg k name -f run.jq", "ask"),
        ("jq --arg k '$ENV' 'env'", "ask"),
        ("jq --arg $X name . data/x.json", "ask"),
        ("jq --arg k $(cat list.txt) . data/x.json", "ask"),
        ("jq --arg * . data/x.json", "ask"),
        ("jq --arg k", "ask"),
        ("jq --arg=k v . data/x.json", "ask"),
        ("jq --arg k v . .env", "ask"),
        ("jq --arg k v . ../other/file.txt", "ask"),
        ("jq --slurpfile k .env . data/x.json", "ask"),
        ("unzip -p data/old.zip readme.txt | head", "allow"),
        ("unzip -p data/old.zip > out", "ask"),
        ("openssl x509 -in a.txt -noout -dates", "allow"),
        ("openssl x509 -in a.txt -noout -out b.txt", "ask"),
        ("openssl x509 -in .env -noout -text", "ask"),
        ("rustc --version --verbose", "allow"),
        ("rustc --version --verbose app.rs", "ask"),
        ("gofmt -l .", "allow"),
        ("gofmt -s -d src/app.py", "allow"),
        ("gofmt -l -w .", "ask"),
        ("gofmt -d -cpuprofile=x .", "ask"),
        ("gofmt -w .", "ask"),
        ("go env GOPATH GOOS", "allow"),
        ("go env -w GOFLAGS=-mod=mod", "ask"),
        ("go env GOPATH -w GOFLAGS=x", "ask"),
        ("go env -u GOFLAGS", "ask"),
        ('expr "$(wc -l < a.txt)" - 1', "allow"),
        ('expr "$API_KEY" : ".*"', "ask"),
        ("look abc data/names.txt", "allow"),
        ("look abc .env", "ask"),
        ("findmnt /", "allow"),
        ("pathchk README.md", "allow"),
    ],
)
def test_readers_with_conditions_names_and_forms_of_their_own_do_not_ask(
    root: Path, command: str, verdict: str
) -> None:
    found = judge(policy(root, held=True), SHELL, command)
    assert (found == "allow") == (verdict == "allow"), found


REALLY = (
    "find . -not -path './src/*' ! -name x | xargs head -3", "jq --arg k KEY '.[$k]' package.json",
    "look KEY a.txt", "gofmt -l .", "go env GOPATH", "unzip -p data.csv", "openssl x509 -in id_rsa -noout", "findmnt /",
    "make -n", "make -pn | grep X", "cd json; cat $(ls)", "cd json; sort $(ls -A | head -9)", "ls -la ~ /tmp",
    "cd conf && for f in $(rg --files); do cat $f; done", "env | cut -d= -f1", "env | grep PATH", "yes | head",
    "x=$(rg --files json | tail -1); cat $x", "cat $(git rev-parse HEAD)", "ls [ab]*",
)  # fmt: skip


def test_what_runs_unasked_changes_nothing_and_shows_no_secret(tmp_path: Path) -> None:
    """The files around it have hostile names; the Makefile writes, and shows secrets, as it is read."""
    runner = Runner(tmp_path / "world")
    rules = policy(runner.world.work, held=True)
    ran = [command for command in REALLY if judge(rules, SHELL, command) == "allow"]
    assert {"make -n", "cd json; cat $(ls)", "env | grep PATH", "yes | head"} <= set(ran)
    try:
        assert [effect for command in ran if (effect := runner.run(command, "held"))] == []
    finally:
        runner.close()
