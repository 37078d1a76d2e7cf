"""What the doctor reports of rules and trust, and which values of settings mean nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.rooms import CheckResult
from ba_tui.core.ports.trust import TrustState
from ba_tui.core.text.wording import suggestion
from ba_tui.permissions.rules.approvals import Approvals, problems_of
from ba_tui.permissions.rules.rule import read_rule
from ba_tui.permissions.rules.rulebook import all_rules
from ba_tui.resources import Places, bundled, places, project_root
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


def check_value(key: str, value: Any) -> None:
    """Refuse a value that fits ``key`` and means nothing. A rule that can't be read would stop every later start.

    Raises:
        UsageError: it is such a value.
    """
    group, _, verdict = key.partition(".")
    if group == "permissions":
        for item in cast("list[str | dict[str, Any]]", value):
            read_rule(item if isinstance(item, str) else str(item["rule"]), verdict)
    if key == "theme":
        folders = (bundled("themes"), places().config / "themes")
        names = ["auto", *sorted({file.stem for folder in folders for file in folder.glob("*.yaml")})]
        if value not in names:
            raise UsageError(f"There is no theme {value!r}; {suggestion(value, names)}")
