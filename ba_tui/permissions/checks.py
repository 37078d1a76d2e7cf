"""Checks of rules, trust and setting values, and the settings of a folder as a new start would load them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Notice
from ba_tui.core.ports.contributions import CheckResult
from ba_tui.core.ports.permissions import TrustState
from ba_tui.core.text.wording import suggestion
from ba_tui.permissions.rules.answers import ProjectApprovals, all_rules, problems_of
from ba_tui.permissions.rules.rule import read_rule
from ba_tui.permissions.trust.grants import Trust
from ba_tui.resources import UserFolders, bundled, places, project_root
from ba_tui.settings import LoadedSettings, load_settings, printable


def rule_problems(loaded: LoadedSettings, where: UserFolders, folder: Path) -> Sequence[str]:
    """Return problems of permission rules and kept answers, one per line."""
    rules = all_rules(loaded.rules, loaded.settings.commands.domains)
    return problems_of(rules, ProjectApprovals(where.approvals, project_root(folder)))


def rule_checks(loaded: LoadedSettings, where: UserFolders, folder: Path) -> Iterator[CheckResult]:
    for text in rule_problems(loaded, where, folder):
        fix = "ba permissions list, ba config edit; see ba guide permissions"
        yield CheckResult("permissions", "fail", printable(text), fix)


def trust_check(seen: TrustState) -> CheckResult:
    """Return the trust state of a folder as a check result."""
    root, brought = printable(str(seen.root)), ", ".join(part.kind for part in seen.holds)
    if seen.trouble:
        return CheckResult("trust", "warn", printable(seen.trouble), "The folder can't be trusted until then.")
    if seen.state == "trusted":
        return CheckResult("trust", "ok", f"{root} is trusted; it contains {brought or 'nothing that runs'}")
    if seen.state == "changed":
        fix = "ba trust shows the change; see ba guide trust."
        return CheckResult("trust", "warn", f"what {root} runs has changed since you trusted it", fix)
    if not brought:
        return CheckResult("trust", "ok", f"{root} contains nothing that runs, so nothing is off")
    fix = "ba trust; see ba guide trust."
    return CheckResult("trust", "warn", f"{root} is not trusted, so these are off: {brought}", fix)


def check_value(key: str, value: Any) -> None:
    """Refuse a value that fits the type of ``key`` but is invalid. An unreadable rule would break every later start.

    Raises:
        UsageError: the value is invalid.
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


def settings_of(folder: Path, where: UserFolders) -> LoadedSettings:
    """Return the settings of a new start in ``folder``, without flags. A project's own settings require trust."""
    root = project_root(folder)
    return load_settings({}, where, root, trusted=Trust(where).trusted(root))


def untrusted_notices(seen: TrustState, *, attended: bool) -> list[Notice]:
    """Return notices about an untrusted folder: what it contains and what stays off until the user trusts it."""
    if seen.state == "trusted":
        return []

    kinds = ", ".join("context files" if part.kind == "context" else part.kind for part in seen.holds)
    untold = [name for part in seen.holds if part.kind == "context" for name in part.names]
    files = f" Models don't see {'; '.join(untold)}." if untold else ""
    if seen.trouble:
        return [Notice(seen.trouble, "warning", "Until then the folder can't be trusted.")]
    if attended:
        off = f" Turned off: {kinds}.{files}" if kinds else ""
        return [Notice(f"This folder is not trusted: ba only reads here.{off}", "warning", "/trust changes that.")]
    if not kinds:
        return []
    text = f"This folder is not trusted. Turned off: {kinds}.{files}"
    return [Notice(text, "info", "Review it, then run `ba trust`, or start with --trust. See ba guide trust.")]
