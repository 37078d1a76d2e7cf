"""What the doctor reports of the sandbox and of people's own tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.rooms import CheckResult
from ba_tui.resources import Places
from ba_tui.settings import Settings
from ba_tui.tools.registry import Registry


def sandbox_checks(settings: Settings, where: Places) -> Iterator[CheckResult]:
    from ba_tui.tools.running.sandbox_report import sandbox_report  # noqa: PLC0415 - it tries programs

    for report in sandbox_report(settings, where):
        yield CheckResult("sandbox", *report)


def tool_checks(found: Callable[[], AbstractContextManager[Registry]]) -> Iterator[CheckResult]:
    """What keeps tools out of the registry ``found``; nothing when the settings are wrong, which is told elsewhere."""
    try:
        with found() as registry:
            problems = registry.problems()
    except UsageError:
        return
    for problem in problems:
        yield CheckResult(
            "tools", "warn", str(problem), "Correct the file; ba tools list shows the rest.", problem.trace
        )
    if not problems:
        yield CheckResult("tools", "ok", "all tools can be used")
