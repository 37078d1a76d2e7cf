"""What the doctor says about hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ba_tui.core.ports.rooms import CheckResult
from ba_tui.hooks.found import found_hooks
from ba_tui.settings import HookLine, printable


def hook_checks(lines: Sequence[HookLine], root: Path, trusted: Callable[[Path], bool]) -> Iterator[CheckResult]:
    """Yield a warning for each hook of the project ``root`` that can't be used."""
    for text in found_hooks(lines, root, trusted)[1]:
        yield CheckResult("hooks", "warn", printable(text), "ba hooks list; see ba guide hooks.")
