"""Which hosts commands in the sandbox may reach, by settings, rules and mode."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ba_tui.core.effects import WORKING
from ba_tui.core.events import Mode
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.tool import Call
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.permissions.answers import all_rules, bundled_rules
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.sandbox.confinement import find, sandbox_for
from ba_tui.permissions.sandbox.layout import bubblewraps
from ba_tui.permissions.session import started_files
from ba_tui.permissions.trust.grants import Trust
from ba_tui.permissions.verdicts import Allow, Ask, Bounds, Deny, JudgedCall
from ba_tui.resources import places
from ba_tui.settings import HookLine, Settings
from ba_tui.settings.hooks import found_hooks
from ba_tui.settings.sections.tools import CommandSettings, HookGroup
from ba_tui.tools.addresses import read_address
from ba_tui.tools.command_runner import judge_host
from tests.permissions.toolset import EDIT


def policy(root: Path, *rules: RuleLine, mode: Mode = "default", bounds: Bounds = Bounds()) -> Policy:  # noqa: B008 - a value
    settings = Settings(commands=CommandSettings(domains=("pypi.org", "*.npmjs.org")))
    return Policy(Workspace(root), all_rules(rules, settings.commands.domains), mode, None, bounds)


def verdict(rules: Policy, address: str) -> Allow | Ask | Deny:
    return judge_host(rules, read_address(address), Call("call", Branch(Turn(), Transcript())))


@pytest.mark.parametrize("mode", ["default", "accept-edits", "auto"])
def test_what_is_listed_is_reached_and_all_else_asks(tmp_path: Path, mode: Mode) -> None:
    rules = policy(tmp_path, mode=mode)
    for listed in ("https://pypi.org/", "http://files.pypi.org/", "https://registry.npmjs.org/"):
        assert isinstance(verdict(rules, listed), Allow), listed
    for other in (
        "https://npmjs.org/",
        "https://pypi.org.evil.org/",
        "https://evilpypi.org/",
        "https://93.184.216.34/",
    ):
        asked = verdict(rules, other)
        assert isinstance(asked, Ask), other
        assert asked.rule == f"shell_network(domain:{read_address(other).host})"
        assert asked.risks == ("network",)


def test_an_unusual_port_always_asks(tmp_path: Path) -> None:
    asked = verdict(policy(tmp_path), "https://pypi.org:8443/")
    assert isinstance(asked, Ask)
    assert (asked.rule, asked.reason) == (None, "Port 8443 is not a web port (80 or 443).")


def test_a_rule_that_denies_wins(tmp_path: Path) -> None:
    for rule in ("shell_network(domain:pypi.org)", "@network", "shell_network"):
        denied = verdict(policy(tmp_path, RuleLine(rule, "deny", "test")), "https://pypi.org/")
        assert isinstance(denied, Deny)
    asking = RuleLine("shell_network(domain:pypi.org)", "ask", "test")
    assert isinstance(verdict(policy(tmp_path, asking), "https://pypi.org/"), Ask)


def test_where_only_reading_is_allowed_nothing_is_reached(tmp_path: Path) -> None:
    assert isinstance(verdict(policy(tmp_path, mode="plan"), "https://pypi.org/"), Deny)
    bounds = Bounds(restricted="Only reading.")
    assert isinstance(verdict(policy(tmp_path, bounds=bounds), "https://pypi.org/"), Deny)


def test_an_answer_is_remembered(tmp_path: Path) -> None:
    rules = policy(tmp_path)
    asked = verdict(rules, "https://crates.io/")
    assert isinstance(asked, Ask)
    assert asked.rule
    rules.remember(asked.rule, "session")
    assert isinstance(verdict(rules, "https://static.crates.io/"), Allow)
    assert isinstance(verdict(rules, "https://crates.io:22/"), Ask)


def test_bypass_asks_nobody(tmp_path: Path) -> None:
    rules = policy(tmp_path, mode="bypass", bounds=Bounds(bypass=True))
    assert isinstance(verdict(rules, "https://anything.org:81/"), Allow)


@pytest.mark.skipif(find(bubblewraps()).mechanism is None, reason="bubblewrap does not work here")
def test_commands_and_file_tools_leave_alone_what_hooks_start(tmp_path: Path) -> None:
    guard = tmp_path / "scripts" / "guard.sh"
    guard.parent.mkdir()
    guard.write_text("echo fine\n")
    hooks = (HookLine("pre_tool", HookGroup(command="$BA_PROJECT_DIR/scripts/guard.sh --all"), "test"),)
    found, _ = found_hooks(hooks, tmp_path, Trust(places()).trusted)
    workspace = Workspace(tmp_path, started=started_files(tmp_path, [hook.command for hook in found]))
    edits = Policy(workspace, bundled_rules(), "accept-edits")
    assert isinstance(edits.judge(JudgedCall(EDIT, {"path": "scripts/guard.sh"}, tmp_path)), Ask)
    assert isinstance(edits.judge(JudgedCall(EDIT, {"path": "scripts/other.sh"}, tmp_path)), Allow)
    sandbox = sandbox_for(Settings(), places(), workspace)
    held = sandbox.confine(WORKING)
    assert held
    script = f"cd {tmp_path}/scripts; echo x > guard.sh; rm -f guard.sh; cd ..; mv scripts old; touch scripts/new"
    subprocess.run(held.wrap(["/bin/sh", "-c", script]), capture_output=True, check=True)
    assert guard.read_text() == "echo fine\n"
    assert (tmp_path / "scripts" / "new").exists()
    sandbox.close()
