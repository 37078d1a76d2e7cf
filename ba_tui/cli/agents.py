"""``ba agents``: list, show and check the agents that files describe."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ba_tui.cli.config import Cwd, folder_of, print_facts
from ba_tui.cli.streams import print_line, say
from ba_tui.cli.trust import untrusted
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.agents import AgentLine
from ba_tui.core.text.wording import correction
from ba_tui.resources import project_root
from ba_tui.settings import printable

if TYPE_CHECKING:
    from ba_tui.agent_files.catalog import AgentFiles

BRIEF = 80

app = typer.Typer(no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="The agent's name, as `ba agents list` shows it.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


@app.command("list")
def list_(
    words: Annotated[list[str] | None, typer.Argument(metavar="WORDS", help="Matching agents, best first.")] = None,
    json_: Json = False,
    cwd: Cwd = None,
) -> int:
    """Print every agent: whether it can be used, where it comes from, its model. Broken ones say why."""
    folder = folder_of(cwd)
    agents = _agents(folder)
    found = agents.search(" ".join(words)) if words else agents.lines()
    if json_:
        print_line(json.dumps([asdict(line) for line in found], indent=2))
    else:
        widest = max((len(line.name) for line in found), default=0)
        model = max((len(line.model) for line in found), default=0)
        for line in found:
            row = f"{line.name:<{widest}}  {line.state:<8}  {line.source:<7}  {line.model or '—':<{model}}"
            print_line(printable(f"{row}  {shorten(line.trouble or line.description, BRIEF, placeholder=' …')}"))
        if not found:
            say("No agents were found.")
    if note := untrusted(project_root(folder)):
        say(note)
    return 0


@app.command()
def show(name: Name, json_: Json = False, cwd: Cwd = None) -> int:
    """Print all there is to know of one agent: its tools, what of its file is not supported, its prompt."""

    folder = folder_of(cwd)
    agents = _agents(folder)
    line = _known(agents, name, project_root(folder))
    prompt = "" if line.trouble else agents.prompt(line.path)
    if json_:
        print_line(json.dumps({**asdict(line), "prompt": prompt}, indent=2))
        return 0
    print_facts({key: _shown(key, value) for key, value in asdict(line).items()}, prompt)
    return 0


@app.command()
def validate(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Files of agents, or folders of them.")],
    json_: Annotated[bool, typer.Option("--json", help="As a JSON array.")] = False,
    cwd: Cwd = None,
) -> int:
    """Check files of agents: what ba makes of each, and what of it is not supported; exit 1 when one can't be used."""
    agents = _agents(folder_of(cwd))
    lines = [line for path in paths for line in _checked(agents, path)]
    if json_:
        print_line(json.dumps([asdict(line) for line in lines], indent=2))
    else:
        for line in lines:
            print_line(printable(f"{line.path}: {'not valid' if line.trouble else f'valid, called {line.name}'}"))
            told = [("error", (line.trouble,) if line.trouble else ()), ("not supported", line.unsupported)]
            for label, texts in (*told, ("ignored field", line.ignored), ("warning", line.warnings)):
                for text in texts:
                    print_line(printable(f"  {label}: {text}"))
    return 1 if any(line.trouble for line in lines) else 0


def _agents(folder: Path) -> AgentFiles:
    """Return the agents that the app would use in ``folder``."""
    from ba_tui.assembly import tools_alone  # noqa: PLC0415 - a quarter of a second, and --help needs none

    with tools_alone(folder, {}) as tools:
        return tools.agents


def _checked(agents: AgentFiles, path: Path) -> Sequence[AgentLine]:
    """Read the agent in the file ``path``, or those in the folder ``path``. Raises UsageError when there is none."""
    if not path.exists():
        raise UsageError(f"There is nothing at {path}.")
    found = agents.described(path)
    if not found:
        raise UsageError(f"{path} contains no agent files.", "Agent files are Markdown, or TOML for Codex.")
    return found


def _known(agents: AgentFiles, name: str, root: Path) -> AgentLine:
    if agent := agents.find(name):
        return agent.line
    hint = correction(name, [line.name for line in agents.lines()], untrusted(root) or "See ba agents list.")
    raise UsageError(f"There is no agent {name!r}.", hint)


def _shown(key: str, value: Any) -> str:
    if key == "tools":
        return "all" if value is None else ", ".join(value) or "none"
    if key == "model":
        return value or "the session's"
    separator = "; " if key in {"unsupported", "warnings"} else ", "
    return separator.join(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else str(value)
