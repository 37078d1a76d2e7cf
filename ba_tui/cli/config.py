"""``ba config``: show settings with their sources, check and change them; ``ba_tui.settings`` reads them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ba_tui.cli.launch import folder_of
from ba_tui.cli.streams import print_line, say
from ba_tui.core.errors import UsageError
from ba_tui.permissions.session import check_value, rule_problems, settings_of
from ba_tui.resources import UserFolders, places, project_root, save_whole
from ba_tui.settings import LoadedSettings, Settings, as_data, leaves, printable, set_value, setting_files
from ba_tui.settings.claude_files import claude_paths
from ba_tui.settings.editing import discreet, value_text
from ba_tui.settings.plain import adapter

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
    file = set_value(places(), key, value, partial(check_value, key))
    print_line(f"{key} is set in {file}")
    source = load(None).sources.get(key, "")
    if source and str(file) not in source:
        say(f"The value has no effect here: {source} overrides it.")
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
    """Return the user's editor. Raises UsageError with the advice ``otherwise`` when none is set."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ("vi" if sys.stdin.isatty() else "")
    if not editor:
        raise UsageError("There is no terminal and no EDITOR.", f"Set EDITOR, or {otherwise}.")
    return editor


def open_in(editor: str, path: Path) -> None:
    """Open ``path`` in the editor and wait until it exits. Raises UsageError when the editor fails."""
    try:
        code = subprocess.run([*shlex.split(editor), str(path)], check=False).returncode
    except (OSError, ValueError) as error:
        raise UsageError(f"The editor {editor!r} can't be started: {error}.", "Set EDITOR to another one.") from error
    if code:
        raise UsageError(f"{editor} ended with {code}.")


@app.command()
def schema() -> int:
    """Print the JSON Schema of config.yaml, for editors."""
    print_line(_schema())
    return 0


def _schema() -> str:
    named = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Settings of ba"}
    described = adapter(Settings).json_schema() | named
    return json.dumps(described, indent=2)


def load(cwd: Path | None, where: UserFolders | None = None) -> LoadedSettings:
    """Load the settings that the app would use in ``cwd``."""
    return settings_of(folder_of(cwd), where or places())


def print_facts(facts: Mapping[str, str], text: str = "") -> None:
    """Print each name with its fact, or a dash when it is empty, then ``text`` after an empty line."""
    for name, fact in facts.items():
        print_line(printable(f"{name:<12}  {fact or '—'}"))
    if text:
        print_line("")
        print_line("\n".join(printable(line) for line in text.splitlines()))


def _warn(loaded: LoadedSettings) -> None:
    for problem in loaded.warnings:
        say(str(problem))
    for line in (line for file in loaded.foreign for line in file.lines):
        say(line)
