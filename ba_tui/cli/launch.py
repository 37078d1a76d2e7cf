"""Open an interface for a conversation, as the flags say. Does not import typer, which would delay the start."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui import __version__
from ba_tui.cli.commands import app_parts
from ba_tui.core.errors import UsageError
from ba_tui.core.start import Start
from ba_tui.resources import UserFolders, places, read_regular

if TYPE_CHECKING:
    from ba_tui.core.services import Services
    from ba_tui.flags import ChatFlags

Flags = Mapping[str, object]
NO_FLAGS: Flags = {}
DUMB = frozenset({"dumb", "unknown"})
FIRST_LOOK = 64_000


def start_chat(given: ChatFlags) -> int:
    """Open the interface that the flags ask for and return the exit code.

    Raises:
        UsageError: flags contradict each other, or a named file or session does not exist.
    """
    if given.version:
        sys.stdout.write(f"ba {__version__}\n")
        return 0
    folder = folder_of(given.cwd)
    if missing := [path for path in given.add_dir or () if not path.expanduser().is_dir()]:
        raise UsageError(f"There is no folder {missing[0]}.", "Check --add-dir.")
    if (lone := given.first_for("resume")) and not (given.continue_ or given.resume):
        raise UsageError(f"{lone} needs a session to resume.", "Add -c, or -r ID.")
    if given.system_prompt is not None and given.system_prompt_file:
        raise UsageError("--system-prompt and --system-prompt-file exclude each other.", "Leave one of them out.")
    if given.permission_mode == "bypass":
        from ba_tui.permissions.verdicts import check_bypass  # noqa: PLC0415 - only where it is used

        check_bypass(given.yes_bypass_as_root)
    given.mcp_config = _server_files(given.mcp_config)
    flags = given.settings()
    # In an ASCII locale Python decodes other bytes as surrogates; encode and decode them as UTF-8.
    words = os.fsencode(" ".join(given.prompt or ())).decode("utf-8", "surrogateescape")
    resume = "last" if given.continue_ else given.resume
    start = Start(words, resume, given.fork, given.theme or "", not given.no_color, all=given.all_)
    if not (given.print_ or given.input_format == "stream-json"):
        return open_app(flags, start, folder, trust=given.trust)
    from ba_tui.cli.printing import print_answer  # noqa: PLC0415 - the app must not pay for it

    return print_answer(flags, start, folder, given)


def _server_files(texts: Sequence[str] | None) -> list[str] | None:
    """Return absolute paths, or JSON texts unchanged. Raises UsageError for a file without a usable server."""
    if not texts:
        return None
    from ba_tui.settings.mcp_configured import check_files  # noqa: PLC0415 - hardly any start

    check_files(texts)
    return [text if text.lstrip().startswith("{") else str(Path(text).expanduser().absolute()) for text in texts]


def open_app(
    flags: Flags = NO_FLAGS,
    start: Start | None = None,
    cwd: Path | None = None,
    *,
    trust: bool = False,
) -> int:
    """Run the full-screen app. Slow imports and connections follow its first paint.

    ``trust``: the user trusts ``cwd`` with its current contents.
    """
    if why := no_screen():
        sys.stderr.write(f'ba: {why} Use ba -p "…" to print one answer.\n')
        return 1
    # Twice Textual's frame rate, so that keys show sooner; an unchanged screen costs nothing.
    os.environ.setdefault("TEXTUAL_FPS", "120")
    from ba_tui.faces.tui.app import BaApp  # noqa: PLC0415 - print mode must never load Textual

    folder = cwd or current_folder()
    start = start or Start()
    theme = start.theme or first_theme(places())
    color = start.color and not os.environ.get("NO_COLOR")
    begin = replace(start, theme=theme, color=color)

    untold = [folder] if trust else []

    def connect() -> Services:
        from ba_tui.assembly import connect as assemble  # noqa: PLC0415 - after the first paint, in a thread

        told = ""
        if untold:
            from ba_tui.permissions.trust.grants import trust_folder  # noqa: PLC0415 - hardly any start

            # Only once, so that revoking trust in the app has effect. After a failure it is tried again.
            with suppress(UsageError):
                # The app asks about anything that needs a review first.
                told = trust_folder(untold[0])
            untold.clear()
        services = assemble(flags, folder)
        if told:
            from ba_tui.core.events import Notice  # noqa: PLC0415 - see BaApp

            return replace(services, notices=(*services.notices, Notice(told, "warning")))
        return services

    # A short switch interval: threads that import or fold events must not delay key presses.
    sys.setswitchinterval(0.001)
    app = BaApp(connect, begin, app_parts)
    app.run()
    return app.return_code or 0


def no_screen() -> str:
    """Return why the app can't run in this terminal; empty when it can."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return "Not a terminal."
    if (kind := os.environ.get("TERM", "")) in DUMB:
        return f"This terminal can't show the app (TERM={kind})."
    return ""


def first_theme(where: UserFolders, env: Mapping[str, str] | None = None) -> str:
    """Return the theme for the first paint, from BA_THEME or the ``theme:`` line of config.yaml; else empty.

    No YAML parser is used, to save time: the settings that are loaded after the paint win.
    """
    env = os.environ if env is None else env
    if named := env.get("BA_THEME", "").strip():
        return named
    try:
        text = read_regular(where.settings, FIRST_LOOK).decode("utf-8-sig", "replace")
    except OSError:
        return ""
    found = re.search(r"""^theme[ \t]*:[ \t]*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s#"'][^#\n]*))""", text, re.MULTILINE)
    return next((group.strip() for group in found.groups() if group), "") if found else ""


def folder_of(cwd: Path | None) -> Path:
    """Return ``cwd``, the value of the flag --cwd, or else the working folder."""
    if cwd is None:
        return current_folder()
    if not cwd.is_dir():
        raise UsageError(f"There is no folder {cwd}.", "Check --cwd.")
    return cwd.absolute()


def current_folder() -> Path:
    """Return the working folder as the user sees it (``$PWD`` keeps symlinks), even when it has been deleted."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return Path(os.environ.get("PWD", "/"))
    shown = Path(os.environ.get("PWD", ""))
    try:
        return shown if shown.is_absolute() and shown.samefile(here) else here
    except OSError:
        return here
