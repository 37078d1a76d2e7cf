"""``ba tools``: list, show, try and create tools. ``ba_tui.tools`` finds them."""

from __future__ import annotations

import json
import keyword
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ba_tui.cli.config import Cwd, folder_of
from ba_tui.cli.streams import print_line, say
from ba_tui.cli.trust import untrusted
from ba_tui.core.calls import unknown_tool
from ba_tui.core.errors import UsageError, run_loop
from ba_tui.core.events import Asked, Event, ToolProgress
from ba_tui.core.questions import Reply
from ba_tui.core.results import ToolResult
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import clipped
from ba_tui.core.tool import Call
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.permissions.trust.grants import Trust
from ba_tui.resources import places, project_root, save_whole, user_home
from ba_tui.settings import printable

if TYPE_CHECKING:
    from ba_tui.assembly.tools import SessionTools
    from ba_tui.tools.registry import Registry, ToolEntry

TOOL = '''\
"""A tool for ba: functions with @tool before them. Their type hints and docstrings are what the model reads."""

from __future__ import annotations

from typing import Annotated

from ba_tui import tool


# effect: the worst it does. "read" runs without asking, in the sandbox, where it can't write or use the network;
# "write", "network" and "execute" ask first.
@tool(effect="read")
def {name}(text: str, limit: Annotated[int, "Characters to read, 1 or more"] = 1000) -> str:
    """{title}: not written yet. Say here what the tool does, when to use it and what comes back.

    Args:
        text: What it works on.
    """
    if limit < 1:
        # The model reads the message of an error, and can do better the next time.
        raise ValueError("limit must be 1 or more")
    # Put the work here.
    return f"{name} read {{len(text[:limit])}} characters"
'''

TEST = '''\
"""Tests of {name}: pytest {shown}. Files named test_*.py, conftest.py or _*.py are no tools to ba."""

import pytest

from {name} import {name}


def test_it_works() -> None:
    assert {name}("some words", 4) == "{name} read 4 characters"


def test_it_says_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        {name}("some words", 0)
'''


def check_name(name: str) -> None:
    """Raise UsageError when ``name`` is not valid as the name of a tool, a file and a function."""
    hint = "Such as word_count: lower-case letters, digits and _."
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", name) or keyword.iskeyword(name):
        raise UsageError(f"{name!r} can't be the name of a tool.", hint)
    if name.startswith("test_") or name == "conftest":
        raise UsageError(f"ba treats a file named {name}.py as a test.", hint)
    if name in sys.stdlib_module_names:
        raise UsageError(f"Python already has a module {name}, which the tool's test would import instead.", hint)


def write_tool(folder: Path, name: str) -> tuple[Path, Path]:
    """Write a new tool and its test into ``folder`` and return both paths.

    Raises:
        UsageError: one of the files exists. StorageError: a file can't be written.
    """
    files = folder / f"{name}.py", folder / f"test_{name}.py"
    for file in files:
        if file.exists():
            raise UsageError(f"{file} already exists.", "Choose another name, or remove the file.")
    shown = ".ba/tools" if folder.parent.name == ".ba" else folder
    save_whole(files[0], TOOL.format(name=name, title=name.replace("_", " ").capitalize()), mode=0o644)
    save_whole(files[1], TEST.format(name=name, shown=shown), mode=0o644)
    return files


BRIEF = 80

app = typer.Typer(no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="The tool's name, as `ba tools list` shows it.")]


@app.command("list")
def list_(json_: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False, cwd: Cwd = None) -> int:
    """Print every tool: whether it is on, its effect, its source. Files that can't be used follow."""
    folder = folder_of(cwd)
    with _tools(folder) as tools:
        entries, problems = tools.registry.entries(), tools.registry.problems()
        if json_:
            wrong = [
                {"file": each.file, "line": each.line, "text": each.text, "trace": each.trace} for each in problems
            ]
            shown = {"tools": [_facts(entry) for entry in entries], "problems": wrong}
            print_line(json.dumps(shown, indent=2))
        else:
            widest = max((len(entry.tool.name) for entry in entries), default=0)
            for entry in entries:
                row = f"{entry.tool.name:<{widest}}  {_state(entry):<4}  {entry.tool.effect.value:<7}  {_brief(entry)}"
                print_line(printable(row if entry.origin == "built-in" else f"{row}  ({entry.place})"))
        for problem in problems:
            say(str(problem))
        if note := untrusted(project_root(folder)):
            say(note)
    return 1 if problems else 0


@app.command()
def show(
    name: Name, json_: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False, cwd: Cwd = None
) -> int:
    """Print all there is to know of one tool, its parameters among it."""
    folder = folder_of(cwd)
    with _tools(folder) as tools:
        facts = _facts(_entry(tools.registry, name, project_root(folder)))
    if json_:
        print_line(json.dumps(facts, indent=2))
        return 0
    description, schema = facts.pop("description"), facts.pop("parameters")
    print_line("\n".join(printable(line) for line in description.splitlines()))
    print_line("")
    for key, value in facts.items():
        text = ", ".join(cast("list[str]", value)) if isinstance(value, list) else str(value)
        text = {"True": "yes", "False": "no"}.get(text, text)
        print_line(printable(f"{key:<10}  {text or '—'}"))
    print_line(f"{'parameters':<10}  {json.dumps(schema, indent=2, ensure_ascii=True)}")
    return 0


@app.command("test")
def try_(
    name: Name,
    args: Annotated[str, typer.Option("--args", metavar="JSON", help="The arguments, as a JSON object.")] = "{}",
    json_: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
    cwd: Cwd = None,
) -> int:
    """Run a tool as a model's call would. Where that would ask for permission, your command is the answer."""
    try:
        given: Any = json.loads(args)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--args is not JSON: {error}.", """Such as --args '{"path": "README.md"}'.""") from error
    if not isinstance(given, dict):
        raise UsageError("--args must be a JSON object.", """Such as --args '{"path": "README.md"}'.""")
    folder = folder_of(cwd)
    with _tools(folder) as tools:
        entry = _entry(tools.registry, name, project_root(folder))
        result, seconds = run_loop(_called(tools, entry, cast("dict[str, Any]", given), quiet=json_))
    if json_:
        told = {
            "tool": name,
            "ok": not result.failed,
            "seconds": round(seconds, 3),
            "summary": result.summary,
            "text": result.text,
            "error": result.error.kind if result.error else None,
        }
        print_line(json.dumps(told, indent=2))
    else:
        print_line("\n".join(printable(line) for line in result.text.splitlines()))
    return 1 if result.failed else 0


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Such as word_count.")],
    user: Annotated[bool, typer.Option("--user", help="For all projects, in your own folder.")] = False,
    cwd: Cwd = None,
) -> int:
    """Write the frame of a tool of this name, and a test beside it, into .ba/tools."""
    check_name(name)
    folder = folder_of(cwd)
    with _tools(folder) as tools:
        if there := tools.registry.entry(name):
            raise UsageError(f"There is a tool {name} already: {there.place}.", "Choose another name.")
    attempt = f"""Try it: ba tools test {name} --args '{{"text": "some words"}}'"""
    if user:
        files = write_tool(places().config / "tools", name)
        print_line(f"Wrote {files[0]} and its test {files[1].name}. Now write what it does.\n{attempt}")
        return 0
    root, granted = _own_root(folder), Trust(places())
    # The user has just written this file, so an empty or trusted folder stays trusted.
    before = granted.look(root)
    known = before.state == "trusted" or not (before.holds or before.trouble)
    files = write_tool(root / ".ba" / "tools", name)
    if known:
        granted.vouch(granted.look(root), files)
    print_line(f"Wrote {files[0]} and its test {files[1].name}. Now write what it does.\n{attempt}")
    print_line("After each change, run: ba trust")
    if note := untrusted(root):
        say(note)
    return 0


def _tools(folder: Path) -> SessionTools:
    """Return the tools that the app would use in ``folder``, each within its guards."""
    from ba_tui.assembly import tools_alone  # noqa: PLC0415 - a quarter of a second, and --help needs none

    return tools_alone(folder, {})


def _entry(registry: Registry, name: str, root: Path) -> ToolEntry:
    if entry := registry.entry(name):
        return entry
    for problem in registry.problems():
        if Path(problem.file).stem == name:
            raise UsageError(f"{problem}.", "Correct the file.")
    if (root / ".ba" / "tools" / f"{name}.py").is_file() and (note := untrusted(root)):
        raise UsageError(note)
    error = unknown_tool(name, [entry.tool.name for entry in registry.entries()]).error
    raise UsageError(error.message if error else name, error.hint if error else "")


async def _called(
    tools: SessionTools, entry: ToolEntry, args: dict[str, Any], *, quiet: bool
) -> tuple[ToolResult, float]:
    """Call the tool, close ``tools``, and return the result and its duration in seconds."""

    def listen(event: Event) -> None:
        match event:
            case Asked(ask_id=ask_id, question=question):
                turn.answer(ask_id, Reply("once" if question.kind == "permission" else "deny"))
            case ToolProgress(text=text) if not quiet:
                sys.stderr.write(paintable(text))
            case _:
                pass

    turn, start = Turn(listen), time.monotonic()
    try:
        result = await entry.tool.run(args, Call("test", Branch(turn, Transcript())))
        return result, time.monotonic() - start
    finally:
        await tools.close()


def _facts(entry: ToolEntry) -> dict[str, Any]:
    tool = entry.tool
    return {
        "name": tool.name,
        "state": _state(entry),
        "effect": tool.effect.value,
        "category": tool.facts.category,
        "tags": list(tool.facts.tags),
        "source": entry.place,
        "origin": entry.origin,
        "subagents": entry.tool.facts.subagents,
        "timeout": tool.timeout,
        "level": tool.facts.level,
        "needs": list(tool.facts.needs),
        "missing": entry.lacking(),
        "bytes": entry.size,
        "description": tool.description,
        "parameters": dict(tool.input_schema),
    }


def _brief(entry: ToolEntry) -> str:
    """Return the first sentence of a tool's description."""
    first = entry.tool.description.splitlines()[0].partition(". ")[0].rstrip(".:")
    return clipped(first, BRIEF)


def _state(entry: ToolEntry) -> str:
    return "core" if entry.core else "on" if entry.enabled else "off"


def _own_root(folder: Path) -> Path:
    """Return the project to write into; never the home folder, whose .ba would apply to every folder below."""
    root = project_root(folder)
    if root == user_home():
        raise UsageError("Your home folder is not a project.", "Use --user, or go into a project first.")
    return root
