"""What the doctor reports of rules and trust."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ba_tui.core.ports.rooms import CheckResult
from ba_tui.core.ports.trust import TrustState
from ba_tui.permissions.rules.approvals import Approvals, problems_of
from ba_tui.permissions.rules.rulebook import all_rules
from ba_tui.resources import Places, project_root
from ba_tui.settings import Loaded, printable


def rule_problems(loaded: Loaded, where: Places, folder: Path) -> Sequence[str]:
    """What is wrong with permission rules and kept answers, one line each."""
    rules = all_rules(loaded.rules, loaded.settings.commands.domains)
    return problems_of(rules, Approvals(where.approvals, project_root(folder)))


def rule_checks(loaded: Loaded, where: Places, folder: Path) -> Iterator[CheckResult]:
    for text in rule_problems(loaded, where, folder):
        fix = "ba permissions list, ba config edit; see ba guide permissions"
        yield CheckResult("permissions", "fail", printable(text), fix)


def trust_check(seen: TrustState) -> CheckResult:
    """How a folder stands with the person."""
    root, brought = printable(str(seen.root)), ", ".join(part.kind for part in seen.holds)
    if seen.trouble:
        return CheckResult("trust", "warn", printable(seen.trouble), "The folder can't be trusted until then.")
    if seen.state == "trusted":
        return CheckResult("trust", "ok", f"{root} is trusted; it brings {brought or 'nothing that runs'}")
    if seen.state == "changed":
        fix = "ba trust shows the change; see ba guide trust."
        return CheckResult("trust", "warn", f"what {root} runs has changed since you trusted it", fix)
    if not brought:
        return CheckResult("trust", "ok", f"{root} brings nothing that runs, so nothing is off")
    fix = "ba trust; see ba guide trust."
    return CheckResult("trust", "warn", f"{root} is not trusted, so these are off: {brought}", fix)
