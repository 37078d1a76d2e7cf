"""``ba config``: shows settings and where they come from, checks and changes them.

What settings there are and how they are read stands in ``ba_tui.settings``.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ba_tui.cli.launch import folder_of
from ba_tui.core.errors import UsageError
from ba_tui.core.text.untrusted import paintable
from ba_tui.resources import Places, places, project_root, save_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ba_tui.settings import Loaded

app = typer.Typer(no_args_is_help=True)

Cwd = Annotated[Path | None, typer.Option(metavar="DIR", help="As if started in this folder.")]
Json = Annotated[bool, typer.Option("--json", help="As one JSON object.")]

START = """\
# Your settings of ba. `ba config show` lists all of them, `ba config schema` describes them.
# yaml-language-server: $schema=config.schema.json
"""


@app.command()
def show(json_: Json = False, cwd: Cwd = None) -> int:
    """Print every setting, its value and where that came from."""
    from ba_tui.settings import as_data, leaves, printable  # noqa: PLC0415 - --help must not pay for the settings
    from ba_tui.settings.form import discreet, value_text  # noqa: PLC0415 - see above

    loaded = load(cwd)
    values: dict[str, Any] = leaves(as_data(loaded.settings))
    rows = {key: (discreet(value, key), loaded.sources.get(key, "default")) for key, value in values.items()}
    _warn(loaded)
    if json_:
        shown = {key: {"value": value, "source": source} for key, (value, source) in rows.items()}
        print_line(json.dumps(shown, indent=2, ensure_ascii=False))
        return 0
    widest = max(map(len, rows))
    for key, (value, source) in rows.items():
        print_line(printable(f"{key:<{widest}}  {value_text(value)}  ({source})"))
    return 0


@app.command()
def path(
    all_: Annotated[bool, typer.Option("--all", help="Every file that is read, lowest rank first.")] = False,
    cwd: Cwd = None,
) -> int:
    """Print the path of your config.yaml."""
    from ba_tui.settings import printable, setting_files  # noqa: PLC0415 - see show
    from ba_tui.settings.claude.files import claude_paths  # noqa: PLC0415

    if not all_:
        print_line(str(places().settings))
        return 0
    root = project_root(folder_of(cwd))
    (first, bundled_file), *others = setting_files(places(), root).items()
    claude = [(f"Claude Code{', project' if project else ''}", path) for path, project in claude_paths(root)]
    for name, file in ((first, bundled_file), *claude, *others):
        print_line(printable(f"{file}  ({name}{'' if file.is_file() else ', not there'})"))
    return 0


@app.command()
def validate(cwd: Cwd = None) -> int:
    """Check all settings and permission rules; exit 1 when something is wrong."""
    from ba_tui.permissions.checks import rule_problems  # noqa: PLC0415 - see show

    loaded = load(cwd)
    rules = rule_problems(loaded, places(), folder_of(cwd))
    foreign = [line for file in loaded.foreign for line in file.lines]
    for problem in (*map(str, loaded.warnings), *rules, *foreign):
        print_line(problem)
    if loaded.errors or rules:
        return 1
    print_line(f"Valid: {places().settings}")
    return 0


@app.command("set")
def set_(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Such as model or permissions.allow.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Text, a number, or YAML such as [a, b].")],
) -> int:
    """Set one key in your config.yaml; everything else in it stays as it is."""
    from ba_tui.permissions.checks import check_value  # noqa: PLC0415 - see show
    from ba_tui.settings import set_value  # noqa: PLC0415

    file = set_value(places(), key, value, partial(check_value, key))
    print_line(f"{key} is set in {file}")
    source = load(None).sources.get(key, "")
    if source and str(file) not in source:
        say(f"It has no effect here: {source} overrides it.")
    return 0


@app.command()
def edit() -> int:
    """Open your config.yaml in $VISUAL or $EDITOR, then check it."""
    where = places()
    editor = editor_for(f"edit {where.settings}")
    if not where.settings.exists():
        save_whole(where.settings, START)
        save_whole(where.settings.with_name("config.schema.json"), _schema())
    open_in(editor, where.settings)
    loaded = load(None)
    _warn(loaded)
    return 1 if loaded.errors else 0


def editor_for(otherwise: str) -> str:
    """The person's editor. Raises UsageError, with what to do ``otherwise``, when there is none."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ("vi" if sys.stdin.isatty() else "")
    if not editor:
        raise UsageError("There is no terminal and no EDITOR.", f"Set EDITOR, or {otherwise}.")
    return editor


def open_in(editor: str, path: Path) -> None:
    """Open ``path`` and wait for the end. Raises UsageError when the editor fails."""
    try:
        code = subprocess.run([*shlex.split(editor), str(path)], check=False).returncode
    except (OSError, ValueError) as error:
        raise UsageError(f"The editor {editor!r} can't be started: {error}.", "Set EDITOR to one that can.") from error
    if code:
        raise UsageError(f"{editor} ended with {code}.")


@app.command()
def schema() -> int:
    """Print the JSON Schema of config.yaml, for editors."""
    print_line(_schema())
    return 0


def _schema() -> str:
    from ba_tui.settings import Settings  # noqa: PLC0415 - see show
    from ba_tui.settings.plain import adapter  # noqa: PLC0415

    named = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Settings of ba"}
    described = adapter(Settings).json_schema() | named
    return json.dumps(described, indent=2)


def load(cwd: Path | None, where: Places | None = None) -> Loaded:
    """The settings as the app would have them in ``cwd``."""
    from ba_tui.permissions.trust.settings import settings_of  # noqa: PLC0415 - see show

    return settings_of(folder_of(cwd), where or places())


def print_line(text: str) -> None:
    """To stdout; a lone surrogate from a file's name must not end the command, nor a control reach the terminal."""
    sys.stdout.write(paintable(text.encode("utf-8", "backslashreplace").decode()) + "\n")


def print_facts(facts: Mapping[str, str], text: str = "") -> None:
    """Print each fact behind its name, a dash for an empty one, then ``text`` after an empty line."""
    from ba_tui.settings import printable  # noqa: PLC0415 - see show

    for name, fact in facts.items():
        print_line(printable(f"{name:<12}  {fact or '—'}"))
    if text:
        print_line("")
        print_line("\n".join(printable(line) for line in text.splitlines()))


def say(text: str) -> None:
    """To stderr, as one line of ba's."""
    line = f"ba: {text}".encode("utf-8", "backslashreplace").decode()
    sys.stderr.write(paintable(line, newlines=False) + "\n")


def _warn(loaded: Loaded) -> None:
    for problem in loaded.warnings:
        say(str(problem))
    for line in (line for file in loaded.foreign for line in file.lines):
        say(line)
