"""Python code is judged as commands are: it asks, it names no secret, only the very same code is remembered."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.core.effects import READING, AgentCeiling, Effect
from ba_tui.core.errors import UsageError
from ba_tui.core.events import Mode
from ba_tui.permissions.policy import Ask
from ba_tui.permissions.rule import read_rule
from ba_tui.permissions.shell.command_text import literals, risks_of_code
from ba_tui.permissions.verdicts import Allow, Deny, JudgedCall
from tests.permissions.toolset import KERNEL, PYTHON, judge, lines, policy


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / ".env").write_text("KEY=1")
    (folder / "plain").symlink_to(".env")
    return folder


@pytest.mark.parametrize("mode", ["default", "accept-edits"])
def test_code_asks_in_every_mode_but_plan(root: Path, mode: str) -> None:
    rules = policy(root, mode="accept-edits" if mode == "accept-edits" else "default")
    assert judge(rules, PYTHON, "print(1)") == "ask"
    rules.set_mode("plan")
    assert judge(rules, PYTHON, "print(1)") == "deny"


@pytest.mark.parametrize("mode", ["default", "plan"])
def test_code_that_a_sandbox_holds_to_reading_asks_nothing(root: Path, mode: Mode) -> None:
    held = policy(root, mode=mode, held=True)
    judged = held.judge(JudgedCall(KERNEL, {"code": "print(1)"}, root))
    assert judged == Allow("", READING)
    assert judge(held, KERNEL, "open('.env').read()") == "deny"
    assert judge(policy(root, *lines("deny", "python"), held=True), KERNEL, "print(1)") == "deny"
    assert judge(policy(root, *lines("ask", "python"), held=True), KERNEL, "print(1)") == "ask"
    reader = AgentCeiling(frozenset({Effect.READ}))
    assert isinstance(held.judge(JudgedCall(KERNEL, {"code": "print(1)"}, root, ceiling=reader)), Allow)
    assert isinstance(held.judge(JudgedCall(PYTHON, {"code": "print(1)"}, root, ceiling=reader)), Deny)


def test_code_that_no_sandbox_holds_is_judged_as_all_code(root: Path) -> None:
    loose = policy(root)
    assert judge(loose, KERNEL, "print(1)") == "ask"
    loose.set_mode("plan")
    assert judge(loose, KERNEL, "print(1)") == "deny"


def test_only_the_very_same_code_is_remembered(root: Path) -> None:
    rules = policy(root)
    judged = rules.judge(JudgedCall(PYTHON, {"code": "print(1)"}, root))
    assert isinstance(judged, Ask)
    assert judged.rule == "python(print(1))"
    rules.remember(judged.rule, "always")
    for again in (rules, policy(root)):
        assert judge(again, PYTHON, "print(1)") == "allow"
        for other in ("print(1) ", "print(1)\n", "print(1);x()", "print( 1)", "print(2)", "PRINT(1)"):
            assert judge(again, PYTHON, other) == "ask", other


@pytest.mark.parametrize("code", ["import os\nos.abort()", "x = '*'", " print(1)", "1" * 300])
def test_code_that_does_not_read_as_what_it_is_is_never_remembered(root: Path, code: str) -> None:
    judged = policy(root).judge(JudgedCall(PYTHON, {"code": code}, root))
    assert isinstance(judged, Ask)
    assert judged.rule is None


@pytest.mark.parametrize("rule", ["python", "python(import *)", "python(print:*)", "python(*)"])
def test_no_rule_allows_code_it_does_not_spell_out(root: Path, rule: str) -> None:
    with pytest.raises(UsageError):
        read_rule(rule, "allow")
    assert judge(policy(root, *lines("allow", rule)), PYTHON, "import os") == "ask"


def test_rules_for_everything_do_not_allow_code(root: Path) -> None:
    rules = policy(root, *lines("allow", "*", "@execute", "p*", "python(**)"))
    assert judge(rules, PYTHON, "print(1)") == "ask"
    assert judge(policy(root, *lines("deny", "python")), PYTHON, "print(1)") == "deny"


@pytest.mark.parametrize(
    "code",
    [
        "open('.env').read()",
        'print(open(".env"))',
        "open(r'./.env')",
        "open(f'.env')",
        'x = """.env"""',
        "Path('plain').read_text()",
        "Path.home() / '.ssh' / 'id_rsa'",
        "os.path.expanduser('~/.ssh/id_rsa')",
        "open('/proc/self/environ')",
        "shutil.copy('../work/.env', 'x')",
        "os.system('cat .env')",
        "glob.glob('.e*')",
        "dotenv_values(dotenv_path=Path('.')/'.env')",
        "if x:\n    files = ['a', '.env']",
    ],
)
def test_code_that_names_a_secret_is_denied(root: Path, code: str) -> None:
    rules = policy(root, *lines("allow", f"python({code})") if code.isprintable() else ())
    assert judge(rules, PYTHON, code) == "deny"


@pytest.mark.parametrize(
    ("code", "risk"),
    [
        ("shutil.rmtree('x')", "destructive"),
        ("os.remove('x')", "destructive"),
        ("con.execute('DROP TABLE x')", "destructive"),
        ("subprocess.run(['rm', '-rf', 'x'])", "destructive"),
        ("requests.get(x)", "network"),
        ("open(x, 'w')", "writes"),
        ("open(x, mode='ab')", "writes"),
        ("Path(x).write_text('')", "writes"),
        ("frame.to_csv(x)", "writes"),
        ("open('/etc/hosts')", "outside the workspace"),
        ("open('../../x')", "outside the workspace"),
    ],
)
def test_risks_of_code_are_named(root: Path, code: str, risk: str) -> None:
    judged = policy(root).judge(JudgedCall(PYTHON, {"code": code}, root))
    assert isinstance(judged, Ask)
    assert risk in judged.risks


@pytest.mark.parametrize(
    "code",
    [
        "a / b // c",
        "x > 3 >> 1",
        "'a/b'.split('/')",
        "open('data.csv').read()",
        "q = 'SELECT * FROM t'; x = 2 * 3 ** y",
        "# don't / 'x",
        "f'{a}/{b}'",
        "rm = 1",
    ],
)
def test_harmless_looking_code_only_runs(root: Path, code: str) -> None:
    judged = policy(root).judge(JudgedCall(PYTHON, {"code": code}, root))
    assert isinstance(judged, Ask)
    assert judged.risks == ("runs a command",)


MONSTERS = ["'" * 60_000, '"""' * 20_000, "\\" * 60_000, "#" * 60_000, "'\\" * 30_000, "x" * 100_000, "\ud800", "\0"]


@pytest.mark.parametrize("code", MONSTERS, ids=range(len(MONSTERS)))
def test_monstrous_code_asks(root: Path, code: str) -> None:
    assert judge(policy(root), PYTHON, code) == "ask"
    assert risks_of_code(code, outside=False) == ("runs a command",)
    assert len(literals(code)) <= len(code)
