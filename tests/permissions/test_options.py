"""A rule for a command covers the options that do no harm; one that is not known whole may be any other, and asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.permissions.verdicts import Ask
from tests.permissions.toolset import SHELL, judge, lines, policy

GRAVE = {
    "git push": [
        "git push -f",
        "git push -qf",
        "git push -fq origin main",
        "git push --forc",
        "git push --force-w=main",
        "git push --mirr",
        "git push --del origin x",
        "git push -d origin x",
        "git push -qd origin x",
        "git push origin +HEAD:main",
        "git push origin +main",
        "git push origin main +x",
        "git push origin HEAD:+main",
        "git push origin :main",
        "git push --receive-pa=./x",
        "git push --rec=./x origin",
        "git push --exe=./x",
        "git push --no-ver",
        "git push --repo=evil",
        "git push --unknown",
        "git push -x",
        "git push -vx",
    ],
    "git fetch": [
        "git fetch --upload-pa=./x .",
        "git fetch --up=./x .",
        "git fetch --upload-pack ./x .",
        "git fetch origin +a:b",
        "git fetch -p",
        "git fetch -qp",
        "git fetch --recurse-sub",
        "git fetch -u",
    ],
    "git clone": ["git clone --templ=x u", "git clone --template x u", "git clone -c a=b u", "git clone --conf=a=b u",
                  "git clone -qc a=b u", "git clone -lc a=b u", "git clone --upl=./x u", "git clone -u ./x u"],
    "git init": ["git init --templ=x", "git init -q --template=x", "git init --separate-git=x"],
    "git reset": ["git reset --hard", "git reset --har", "git reset --ha HEAD~1", "git reset --kee", "git reset -qp"],
    "git clean": ["git clean -f", "git clean -qfdx", "git clean -nfx", "git clean --for", "git clean -d -f", "git clean -xq"],
    "git commit": ["git commit -qn", "git commit -n", "git commit --no-ver -m x", "git commit --no-verify -m x",
                   "git commit -e", "git commit --templ=x", "git commit -mx --edi", "git commit -am x -c HEAD"],
    "git rebase": ["git rebase -x ./x", "git rebase -qx ./x", "git rebase --exe=./x", "git rebase -i", "git rebase --inter"],
    "git merge": ["git merge -s x", "git merge --strat=x y", "git merge -qs x y"],
    "git checkout": ["git checkout -f", "git checkout -qf", "git checkout --forc", "git checkout -B x", "git checkout -qB x"],
    "git archive": ["git archive --outp=x HEAD", "git archive -ox HEAD", "git archive --remo=x HEAD", "git archive --exe=./x HEAD"],
    "git grep": ["git grep --open-f=./x y", "git grep -O./x y", "git grep -nO./x y", "git grep --textc y"],
    "git diff": ["git diff --ext-d", "git diff --textc", "git diff --outp=x", "git diff -pO./x", "git diff --unknown"],
    "git": ["git --exec-pa=. status", "git -c a=b status", "git --git-d=x status", "git --work-t x status", "git -p log",
            "git --pagin log", "git push -qf", "git reset --har"],
    "make": ["make --eva=x", "make --eval x", "make -sf evil.mk", "make -sfevil.mk", "make --fil=x", "make --makef=x", "make -C x",
             "make -kC x", "make --direc=x", "make -ksI x", "make --incl=x", "make SHELL=./x", "make .SHELLFLAGS=x",
             "make MAKEFLAGS=--eval=x", "make -Z", "make --unknown"],
    "npm": ["npm --script-sh=./x test", "npm test --script-sh=./x", "npm test --node-op=x", "npm run x --prefi=y",
            "npm i --registr=x", "npm i --unknown", "npm install --userc=x", "npm -C x test"],
    "npm run": ["npm run build --script-sh ./x", "npm run build --unknown", "npm run --pref=x build"],
    "pytest": ["pytest -qp evil", "pytest -pevil", "pytest --pdb", "pytest --pdbc=x:y", "pytest -xc evil.ini", "pytest --roo=x",
               "pytest --overr a=b", "pytest -qo a=b", "pytest --baset=x", "pytest --junitx=x", "pytest --unknown", "pytest @x"],
    "cargo test": ["cargo test --conf=x", "cargo test --config x", "cargo test -qZ x", "cargo test --unknown"],
    "sed": ["sed --in-pl p a", "sed -ni p a", "sed -nf x a", "sed --fil=x a", "sed --unknown p a"],
    "sort": ["sort --outp=x a", "sort -uox a", "sort --compr=./x a", "sort -T x a", "sort --temporary=x a", "sort --unknown a"],
    "tar": ["tar -tf a --use-comp=./x", "tar --to-com=./x -xf a", "tar -tIf ./x a", "tar --checkpoint-act=exec=x -tf a"],
    "rg": ["rg --pr=./x y", "rg --search-z y", "rg -nz y", "rg --hostname=./x y"],
    "docker run": ["docker run --priv x", "docker run -itv /:/x y", "docker run --moun=x y", "docker run --net=host x"],
    "kubectl": ["kubectl get pods --kubec=x", "kubectl get pods --raw=/x", "kubectl get pods --tok=x", "kubectl apply --serv=x"],
    "eslint": ["eslint --rulesd=x .", "eslint --plug=x .", "eslint --resolve-plugins=x .", "eslint --unknown ."],
    "gradle": ["gradle test --init-s=x", "gradle -qI x test", "gradle --proj=x test", "gradle -Dx=y test", "gradle -qDx=y test"],
    "mvn test": ["mvn test -Dx=y", "mvn test --sett=x", "mvn test -qf x", "mvn test -gs x"],
    "cp": ["cp --suff=x a b", "cp --back a b", "cp -ab a b", "cp -aS x a b"],
    "zip": ["zip -rT x y", "zip -TT ./x y z", "zip --unzip=./x a b", "zip -rm x y"],
    "mypy": ["mypy --python-exe=./x .", "mypy --config-f=x .", "mypy --install-t .", "mypy --cache=x .", "mypy @x"],
    "ruff check": ["ruff check --fi .", "ruff check --unsafe .", "ruff check --conf=x .", "ruff check -o x .", "ruff check --outp x"],
}  # fmt: skip
HARMLESS = {
    "git push": [
        "git push",
        "git push -u origin main",
        "git push -q --tags",
        "git push origin HEAD:refs/heads/x",
        "git push -qu origin x",
    ],
    "git fetch": ["git fetch --all --tags", "git fetch -q origin main", "git fetch --depth 1 origin"],
    "git commit": [
        "git commit -am 'a b'",
        "git commit --amend --no-edit -q",
        "git commit -q -F a.txt",
        "git commit -asm x",
    ],
    "git add": ["git add -A", "git add -u src", "git add -nv ."],
    "git reset": ["git reset", "git reset -q HEAD a.txt", "git reset --soft HEAD~1"],
    "git clean": ["git clean -n", "git clean -nq"],
    "git checkout": ["git checkout -b x", "git checkout -q main", "git checkout -- a.txt"],
    "git rebase": ["git rebase --onto a b", "git rebase --continue", "git rebase -q main"],
    "git clone": ["git clone --depth 1 https://example.org/a/b", "git clone -b x u v"],
    "make": ["make -j4 -k all", "make -sk test", "make V=1 check", "make -j 4", "make -n"],
    "npm": ["npm test", "npm run build -- --anything --script-shell=x", "npm ci --ignore-scripts", "npm i -D x"],
    "pytest": ["pytest -xq -k 'a and b' --tb=short", "pytest --maxfail=1 -n 4 tests", "pytest -rA --cov=src tests"],
    "cargo test": ["cargo test --release -p a -- --nocapture", "cargo test --all-features -q"],
    "docker run": ["docker run --rm -it x", "docker run -d --name a -p 1:2 x"],
    "eslint": ["eslint --fix --ext .ts src"],
    "mypy": ["mypy --strict src", "mypy -p a"],
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "a.txt").write_text("x")
    return tmp_path


@pytest.mark.parametrize("name", GRAVE)
def test_an_option_that_is_not_known_whole_asks_under_a_rule(root: Path, name: str) -> None:
    for held in (False, True):
        rules = policy(root, *lines("allow", f"shell({name}:*)", "write_file(**)"), held=held)
        for command in GRAVE[name]:
            assert judge(rules, SHELL, command) != "allow", command


@pytest.mark.parametrize("name", HARMLESS)
def test_options_that_do_no_harm_are_covered(root: Path, name: str) -> None:
    rules = policy(root, *lines("allow", f"shell({name}:*)", "write_file(**)"))
    for command in HARMLESS[name]:
        judged = rules.judge(SHELL, {"command": command}, root)
        assert judge(rules, SHELL, command) == "allow", (command, judged)


def test_a_rule_that_names_the_option_covers_it(root: Path) -> None:
    rules = policy(
        root, *lines("allow", "shell(git push --force:*)", "shell(make -sf build.mk:*)", "shell(git reset --har)")
    )
    for command in ("git push --force origin", "make -sf build.mk all", "git reset --har"):
        assert judge(rules, SHELL, command) == "allow"
    judged = rules.judge(SHELL, {"command": "git push --forc"}, root)
    assert isinstance(judged, Ask)
    assert judged.reason == "`git push --force` may lose work."
