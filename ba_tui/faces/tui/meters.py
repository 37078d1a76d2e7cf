"""What the meters show, as one fold over events: tokens, cost, how full the window is, todos, the branch of git.

Values and text only; where they stand on the screen is for the widgets.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from ba_tui.core.events import Event, MessageDone, TurnStarted
from ba_tui.core.messages import Usage
from ba_tui.resources import read_regular


@dataclass(frozen=True, slots=True)
class Totals:
    """``cost`` None once any answer had no price; ``filled`` is the window used by the newest answer."""

    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    filled: int = 0
    turns: int = 0

    def after(self, event: Event) -> Totals:
        match event:
            case MessageDone(message=message) if message.usage is not None:
                used = message.usage
                cost = None if self.cost is None or event.cost is None else self.cost + event.cost
                filled = used.prompt + used.output if event.agent == "main" else self.filled
                return replace(self, usage=self.usage + used, cost=cost, filled=filled)
            case TurnStarted(agent="main"):
                return replace(self, turns=self.turns + 1)
            case _:
                return self


def short_count(number: int) -> str:
    """``950``, ``12.3k``, ``1.2M``."""
    if number < 1_000:
        return str(number)
    if number < 999_950:
        return f"{number / 1_000:.1f}k" if number < 99_950 else f"{number / 1_000:.0f}k"
    return f"{number / 1_000_000:.1f}M"


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
