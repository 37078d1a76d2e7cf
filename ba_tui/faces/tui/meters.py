"""How the meters say what a session used: tokens, money, how full the window is; and the branch of git.

Text only. What is counted is core.ledger's; where it stands on the screen is for the widgets.
"""

from __future__ import annotations

from pathlib import Path

from ba_tui.core.ledger import Ledger, cached_share
from ba_tui.core.messages import Usage
from ba_tui.resources import read_regular

NEARLY, FULL = 80, 95
"""Per cent of the window from which people are warned."""


def short_count(number: int) -> str:
    """``950``, ``12.3k``, ``1.2M``."""
    if number < 1_000:
        return str(number)
    if number < 999_950:
        return f"{number / 1_000:.1f}k" if number < 99_950 else f"{number / 1_000:.0f}k"
    return f"{number / 1_000_000:.1f}M"


def duration(seconds: int) -> str:
    """``14 s``, ``2 min 5 s``."""
    return f"{seconds // 60} min {seconds % 60} s" if seconds >= 60 else f"{seconds} s"


def money(cost: float | None) -> str:
    """US dollars; a dash when it is not known."""
    if cost is None:
        return "—"
    return f"${cost:.2f}" if cost >= 1 or cost == 0 else f"${cost:.3f}"


def age(seconds: float) -> str:
    """How long ago, in one unit."""
    for size, unit in ((86_400 * 365, "y"), (86_400 * 30, "mo"), (86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "now"


def share(filled: int, window: int) -> int:
    """Per cent of the window, at most 100."""
    return min(100, round(100 * filled / window)) if window > 0 else 0


def bar(percent: int, width: int) -> str:
    """A bar of ``width`` cells."""
    full = round(percent * width / 100)
    return "━" * full + "─" * (width - full)


def fullness(percent: int) -> tuple[str, str]:
    """A warning in a word, and the colour that goes with it."""
    if percent >= FULL:
        return "full", "$text-error"
    return ("nearly full", "$text-warning") if percent >= NEARLY else ("", "$text-muted")


def filled(ledger: Ledger) -> str:
    """Tokens of the window in use; ``~`` when not all of them were counted by the vendor."""
    return f"{'~' * ledger.estimated}{short_count(ledger.filled)}"


def cache_share(usage: Usage) -> str:
    """How much of what went in came from the prompt cache."""
    part = cached_share(usage)
    return "—" if part is None else f"{100 * part:.0f}%"


def git_branch(cwd: Path) -> str:
    """The branch checked out in ``cwd``, or the start of a detached commit; empty outside git. Reads two files."""
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
