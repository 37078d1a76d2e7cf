"""Format the figures of a session: tokens, money, context window; and the branch of git.

Text only: ``core.ledger`` counts, and widgets place the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ba_tui.core.ledger import Ledger, cached_share
from ba_tui.core.messages import Usage
from ba_tui.core.ports.context import Weight
from ba_tui.resources import read_regular

NEARLY, FULL = 80, 95
"""Per cent of the window from which ba warns."""


def short_count(number: int) -> str:
    """Return ``950``, ``12.3k``, ``1.2M``."""
    if number < 1_000:
        return str(number)
    if number < 999_950:
        return f"{number / 1_000:.1f}k" if number < 99_950 else f"{number / 1_000:.0f}k"
    return f"{number / 1_000_000:.1f}M"


def duration(seconds: float) -> str:
    """Return ``0.3 s``, ``42 s``, ``3 min 5 s``; whole numbers have no decimals."""
    if seconds < 10 and not isinstance(seconds, int):
        return f"{seconds:.1f} s"
    whole = int(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{seconds:.0f} s"


def short_duration(seconds: float) -> str:
    """Return ``80ms``, ``0.4s``, ``12s``, ``2m05s``, ``1:02:05``, ``26h``."""
    if seconds < 0.095:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}" if whole < 86_400 else f"{whole // 3600}h"


def money(cost: float | None) -> str:
    """Return US dollars; a dash when the cost is unknown."""
    if cost is None:
        return "—"
    return f"${cost:.2f}" if cost >= 1 or cost == 0 else f"${cost:.3f}"


def age(seconds: float) -> str:
    """Return how long ago, in one unit."""
    for size, unit in ((86_400 * 365, "y"), (86_400 * 30, "mo"), (86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "now"


def share(filled: int, window: int) -> int:
    """Return the percentage of the window, at most 100."""
    return min(100, round(100 * filled / window)) if window > 0 else 0


def bar(percent: int, width: int) -> str:
    """Return a bar of ``width`` cells."""
    full = round(percent * width / 100)
    return "━" * full + "─" * (width - full)


def fullness(percent: int) -> tuple[str, str]:
    """Return a warning in one word, and its colour."""
    if percent >= FULL:
        return "full", "$text-error"
    return ("nearly full", "$text-warning") if percent >= NEARLY else ("", "$text-muted")


def filled(ledger: Ledger) -> str:
    """Return the tokens in use; ``~`` marks an estimate, when the vendor did not count all of them."""
    return f"{'~' * ledger.estimated}{short_count(ledger.filled)}"


def cache_share(usage: Usage) -> str:
    """Return the share of input tokens that came from the prompt cache."""
    part = cached_share(usage)
    return "—" if part is None else f"{100 * part:.0f}%"


def git_branch(cwd: Path) -> str:
    """Return the branch checked out in ``cwd``, or the start of a detached commit; empty outside git."""
    for folder in (cwd, *cwd.parents):
        mark = folder / ".git"
        try:
            if mark.is_file():
                # A worktree or submodule: the file names the real folder.
                pointed = read_regular(mark, 4_096).decode("utf-8", "replace").removeprefix("gitdir:").strip()
                mark = folder / pointed
            head = read_regular(mark / "HEAD", 4_096).decode("utf-8", "replace").strip()
        except OSError:
            continue
        reference = head.removeprefix("ref: refs/heads/")
        return reference if reference != head else head[:8]
    return ""


def weight_in_words(weights: Sequence[Weight]) -> str:
    """Return ``+2.1k tokens: a.csv 1.9k, f.py:10-40 200``; empty for no weights."""
    if not weights:
        return ""
    total = sum(weight.tokens for weight in weights)
    parts = [f"{weight.name}{_weight(weight)}" for weight in weights]
    return f"+{short_count(total)} tokens: {', '.join(parts)}"


def _weight(weight: Weight) -> str:
    return f": {weight.trouble}" if weight.trouble else f" {short_count(weight.tokens)}"
