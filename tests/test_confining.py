"""Which hosts commands in the sandbox may reach, by settings, rules and mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.assembly.confining import judge_host
from ba_tui.core.events import Mode
from ba_tui.core.session import RuleLine
from ba_tui.permissions.bounds import Bounds
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.rulebook import all_rules
from ba_tui.permissions.verdicts import Allow, Ask, Deny
from ba_tui.settings import Settings
from ba_tui.settings.model import Commands
from ba_tui.tools.web_addresses import read_address


def policy(root: Path, *rules: RuleLine, mode: Mode = "default", bounds: Bounds = Bounds()) -> Policy:  # noqa: B008 - a value
    settings = Settings(commands=Commands(domains=("pypi.org", "*.npmjs.org")))
    return Policy(Workspace(root), all_rules(rules, settings.commands.domains), mode, None, bounds)


def verdict(rules: Policy, address: str) -> Allow | Ask | Deny:
    return judge_host(rules, read_address(address))


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
    assert (asked.rule, asked.reason) == (None, "Port 8443 is not one of the web's.")


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
