"""Opens a face for a conversation. No typer here: the plain start of the app must not pay for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.core.errors import UsageError
from ba_tui.core.start import Start

if TYPE_CHECKING:
    from ba_tui.core.conversation import Services

Flags = Mapping[str, object]
NO_FLAGS: Flags = {}
DUMB = frozenset({"dumb", "unknown"})


def open_app(
    flags: Flags = NO_FLAGS, start: Start | None = None, cwd: Path | None = None, *, ours: bool = False
) -> int:
    """The full-screen app. What is heavy is connected after its first paint. ``ours``: ba itself made ``cwd``."""
    if why := _no_screen():
        sys.stderr.write(f'ba: {why} Use ba -p "…" to print one answer.\n')
        return 1
    # Twice the usual frames: a key shows at the next one, and nothing is drawn when nothing changes.
    os.environ.setdefault("TEXTUAL_FPS", "120")
    from ba_tui.faces.tui.app import BaApp  # noqa: PLC0415 - print mode must never load Textual
    from ba_tui.resources import first_theme, places  # noqa: PLC0415

    folder = cwd or current_folder()
    start = start or Start()
    theme = start.theme or first_theme(places())
    color = start.color and not os.environ.get("NO_COLOR")
    begin = Start(start.prompt, start.resume, start.fork, theme, color)

    def connect() -> Services:
        from ba_tui.assembly import connect as assemble  # noqa: PLC0415 - after the first paint, in a thread

        return assemble(flags, folder, ours=ours)

    # Threads that import or fold must not hold up a key press for longer than this.
    sys.setswitchinterval(0.001)
    app = BaApp(connect, begin)
    app.run()
    return app.return_code or 0


def _no_screen() -> str:
    """Why the app can't be shown here; empty where it can."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return "Not a terminal."
    if (kind := os.environ.get("TERM", "")) in DUMB:
        return f"This terminal can't show the app (TERM={kind})."
    return ""


def folder_of(cwd: Path | None) -> Path:
    """``cwd`` as the flag --cwd named it, or else the working folder."""
    if cwd is None:
        return current_folder()
    if not cwd.is_dir():
        raise UsageError(f"There is no folder {cwd}.", "Check --cwd.")
    return cwd.absolute()


def current_folder() -> Path:
    """The working folder as the person sees it (``$PWD`` keeps their symlinks), or where it was before it vanished."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return Path(os.environ.get("PWD", "/"))
    shown = Path(os.environ.get("PWD", ""))
    try:
        return shown if shown.is_absolute() and shown.samefile(here) else here
    except OSError:
        return here
