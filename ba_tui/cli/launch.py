"""Opens a face for a conversation: what the flags mean, and the app. No typer here: a start must not wait for it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.cli.flags import ChatFlags
from ba_tui.core.errors import UsageError
from ba_tui.core.start import Start

if TYPE_CHECKING:
    from ba_tui.core.services import Services
    from ba_tui.resources import Places

Flags = Mapping[str, object]
NO_FLAGS: Flags = {}
DUMB = frozenset({"dumb", "unknown"})
FIRST_LOOK = 64_000


def start_chat(given: ChatFlags) -> int:
    """Open the face that the flags ask for; returns the exit code.

    Raises:
        UsageError: flags do not go together, or name what is not there.
    """
    folder = folder_of(given.cwd)
    if missing := [path for path in given.add_dir or () if not path.expanduser().is_dir()]:
        raise UsageError(f"There is no folder {missing[0]}.", "Check --add-dir.")
    if given.fork and not (given.continue_ or given.resume):
        raise UsageError("--fork copies a session, and none is named.", "Add -c, or -r ID.")
    if given.all_ and not (given.continue_ or given.resume):
        raise UsageError("--all says which sessions -c and -r consider.", "Add -c or -r.")
    if given.system_prompt is not None and given.system_prompt_file:
        raise UsageError("--system-prompt and --system-prompt-file exclude each other.", "Leave one of them out.")
    if given.permission_mode == "bypass":
        from ba_tui.permissions.bounds import check_bypass  # noqa: PLC0415 - only where it is used

        check_bypass(given.yes_bypass_as_root)
    # Where the locale says ASCII, Python has taken the bytes of other letters apart.
    words = os.fsencode(" ".join(given.prompt or ())).decode("utf-8", "surrogateescape")
    resume = "last" if given.continue_ else given.resume
    start = Start(words, resume, given.fork, given.theme or "", not given.no_color, all=given.all_)
    if not (given.print_ or given.input_format == "stream-json"):
        return open_app(_settings(given), start, folder, trust=given.trust)
    from ba_tui.cli.printing import print_answer  # noqa: PLC0415 - the app must not pay for it

    return print_answer(_settings(given), start, folder, given)


def _settings(given: ChatFlags) -> Flags:
    """What flags set, by the names of the settings."""
    flags: dict[str, object] = {
        "model": given.model,
        "small.model": given.small_model,
        "reasoning.model": given.reasoning_model,
        "fallback_model": given.fallback_model,
        "effort": given.effort,
        "temperature": given.temperature,
        "permission_mode": given.permission_mode,
        "output_format": given.output_format,
        "permissions.allow": given.allow,
        "permissions.ask": given.ask,
        "permissions.deny": given.deny,
        "agents.main": given.agent,
        "agents.given": given.agents,
        "mcp.config": _server_files(given.mcp_config),
        "mcp.strict": given.strict_mcp_config or None,
        "add_dirs": [str(path) for path in given.add_dir] if given.add_dir else None,
        "max_loops": given.max_loops,
        "max_cost": given.max_cost,
        "max_tokens": given.max_tokens,
        "system_prompt": given.system_prompt,
        "system_prompt_file": str(given.system_prompt_file) if given.system_prompt_file else None,
        "append_system_prompt": given.append_system_prompt,
        "memory.private": given.private or None,
        "theme": given.theme,
    }
    return {key: value for key, value in flags.items() if value is not None}


def _server_files(texts: Sequence[str] | None) -> list[str] | None:
    """Absolute paths, or the JSON that was given. Raises UsageError for a file of which nothing can be used."""
    if not texts:
        return None
    from ba_tui.settings.mcp.found import check_files  # noqa: PLC0415 - hardly any start

    check_files(texts)
    return [text if text.lstrip().startswith("{") else str(Path(text).expanduser().absolute()) for text in texts]


def open_app(
    flags: Flags = NO_FLAGS,
    start: Start | None = None,
    cwd: Path | None = None,
    *,
    trust: bool = False,
) -> int:
    """The full-screen app. What is heavy is connected after its first paint.

    ``trust``: the person trusts ``cwd`` with what it holds now.
    """
    if why := no_screen():
        sys.stderr.write(f'ba: {why} Use ba -p "…" to print one answer.\n')
        return 1
    # Twice the usual frames: a key shows at the next one, and nothing is drawn when nothing changes.
    os.environ.setdefault("TEXTUAL_FPS", "120")
    from ba_tui.faces.tui.app import BaApp  # noqa: PLC0415 - print mode must never load Textual
    from ba_tui.resources import places  # noqa: PLC0415

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

            # Once: a person who takes it back in the app means it. What fails is tried again with the rest.
            with suppress(UsageError):
                # What can't be trusted unseen is asked about in the app.
                told = trust_folder(untold[0])
            untold.clear()
        services = assemble(flags, folder)
        if told:
            from ba_tui.core.events import Notice  # noqa: PLC0415 - see BaApp

            return replace(services, notices=(*services.notices, Notice(told, "warning")))
        return services

    # Threads that import or fold must not hold up a key press for longer than this.
    sys.setswitchinterval(0.001)
    app = BaApp(connect, begin)
    app.run()
    return app.return_code or 0


def no_screen() -> str:
    """Why the app can't be shown here; empty where it can."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return "Not a terminal."
    if (kind := os.environ.get("TERM", "")) in DUMB:
        return f"This terminal can't show the app (TERM={kind})."
    return ""


def first_theme(where: Places, env: Mapping[str, str] | None = None) -> str:
    """The theme for the first paint, from BA_THEME or the ``theme:`` line of config.yaml; else empty.

    A look at one line, without a YAML parser: the settings proper are loaded after the paint and win.
    """
    from ba_tui.resources import read_regular  # noqa: PLC0415

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
