"""``ba hooks``: list the hooks of the user and of a trusted project, by event."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ba_tui.cli.config import Cwd, folder_of, load
from ba_tui.cli.streams import print_line, say
from ba_tui.permissions.trust.grants import Trust
from ba_tui.resources import places, project_root
from ba_tui.settings import printable
from ba_tui.settings.claude_files import NAMES
from ba_tui.settings.hooks import found_hooks

if TYPE_CHECKING:
    from ba_tui.settings.hooks import Hook

app = typer.Typer(no_args_is_help=True)
OURS = (".ba/config.yaml", ".ba/config.local.yaml")


@app.command("list")
def list_(json_: Annotated[bool, typer.Option("--json", help="As one JSON array.")] = False, cwd: Cwd = None) -> int:
    """Print every hook: its event, its tools, its command and its file.

    Events and matchers may have ba's names or Claude Code's (pre_tool or PreToolUse, shell or Bash). A hook reads JSON
    on standard input. Tools and their input are named as the matcher names them; without a matcher, as the event does.
    """
    folder = folder_of(cwd)
    root, where = project_root(folder), places()
    hooks, problems = found_hooks(load(folder).hooks, root, Trust(where).trusted)
    rows = [{**asdict(hook), "project": _of_project(hook, root)} for hook in hooks]
    if json_:
        print_line(json.dumps(rows, indent=2, ensure_ascii=True))
    else:
        _print(hooks, root)
    for problem in problems:
        say(problem)
    brought = [name for name in (*OURS, *NAMES) if (root / name).is_file()]
    if brought and not Trust(where).trusted(root):
        say(f"This folder is not trusted, so hooks in {', '.join(brought)} are off. Review them: ba trust")
    return 1 if problems else 0


def _print(hooks: Sequence[Hook], root: Path) -> None:
    if not hooks:
        sys.stderr.write(f"No hooks. Set them under hooks: in {places().settings}\n")
        return
    events = max(len(hook.event) for hook in hooks)
    matchers = max(len(hook.matcher or "*") for hook in hooks)
    for hook in hooks:
        whose = ", trusted" if _of_project(hook, root) else ""
        where = f"({hook.source}{whose}; {hook.timeout:g} s)"
        print_line(printable(f"{hook.event:<{events}}  {hook.matcher or '*':<{matchers}}  {hook.text}  {where}"))


def _of_project(hook: Hook, root: Path) -> bool:
    return any(hook.source.startswith(f"{root / folder}/") for folder in (".ba", ".claude"))
