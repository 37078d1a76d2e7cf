"""``ba sessions``: list, show, search, export, request, import, rename, delete, prune, fork and compare saved sessions.

Results go to stdout, messages to stderr. This module uses the library's protocol and knows no file formats.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ba_tui.cli.config import load
from ba_tui.cli.launch import current_folder
from ba_tui.cli.streams import write_output
from ba_tui.core.errors import BaError, SessionNotFound, StorageError, UsageError, run_loop
from ba_tui.core.messages import Usage
from ba_tui.core.ports.datasets import Datasets, ExportedFile
from ba_tui.core.ports.sessions import SavedRequest, SessionInfo, TurnLine
from ba_tui.core.services import Library
from ba_tui.core.text.cells import clip_start
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import byte_size, count
from ba_tui.resources import places
from ba_tui.sessions.checkpoints.keeper import session_patch
from ba_tui.sessions.exports.document import as_record
from ba_tui.sessions.foreign import one_line
from ba_tui.sessions.upkeep import RetentionRule, seconds_of, sessions_to_prune

LEAST_TITLE, LEAST_FOLDER = 12, 14
"""Smallest widths of titles and folders, in columns."""
PROMPT = 100
"""Length of a prompt in the list of turns, in characters."""


def session_table(infos: Sequence[SessionInfo], *, everywhere: bool, width: int) -> Table:
    """Return a table of sessions. ``everywhere`` adds their folders; titles and folders are cut to fit ``width``."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("Id", "Title", "Used", "Turns", "Cost"):
        right = name in {"Turns", "Cost"}
        table.add_column(
            name,
            no_wrap=True,
            justify="right" if right else "left",
            overflow="ellipsis" if name == "Title" else "fold",
            min_width=LEAST_TITLE if name == "Title" else None,
        )
    if everywhere:
        table.add_column("Folder", no_wrap=True, overflow="ellipsis")
    room = max(LEAST_FOLDER, width // 4)
    for info in infos:
        mark = f" [open in {info.locked_by}]" if info.locked_by else " [ba -p]" if info.unattended else ""
        title = (info.title or info.preview or "Untitled") + mark
        cells = [info.id, title, local_time(info.updated), str(info.turns), price(info.cost)]
        table.add_row(*map(cell, [*cells, *([clip_start(str(info.cwd), room)] if everywhere else [])]))
    return table


def prompt_text(line: TurnLine, room: int) -> str:
    """Return the prompt of a turn in at most ``room`` columns, with the outcome unless it is the usual one."""
    ended = f" ({line.ended})" if line.ended not in {"", "done"} else ""
    text = Text(one_line(line.prompt, PROMPT))
    text.truncate(room - len(ended), overflow="ellipsis")
    return text.plain + ended


def cell(text: str) -> Text:
    """Return ``text`` for a table, without markup or escape sequences, which even a folder's name may contain."""
    return Text(one_line(text))


def session_facts(info: SessionInfo, usage: Usage) -> list[tuple[str, str]]:
    """Return the facts of a session as labels and values."""
    facts = [
        ("Id", info.id),
        ("Title", info.title),
        ("Folder", str(info.cwd)),
        ("Begun", local_time(info.created)),
        ("Used", local_time(info.updated)),
        ("Model", info.model),
        ("Tokens", f"{usage.about}{usage.prompt:,} in, {usage.about}{usage.output:,} out"),
        ("Cost", price(info.cost)),
        ("Open in", info.locked_by),
    ]
    return [(label, value) for label, value in facts if value]


def session_record(info: SessionInfo) -> dict[str, Any]:
    """Return a session as JSON data."""
    return {
        "id": info.id,
        "title": info.title,
        "cwd": str(info.cwd),
        "created": info.created,
        "updated": info.updated,
        "turns": info.turns,
        "cost_usd": info.cost,
        "model": info.model,
        "preview": info.preview,
        "locked_by": info.locked_by,
        "unattended": info.unattended,
    }


def local_time(at: float) -> str:
    """Format ``at``, in seconds since the epoch, in the local time zone."""
    try:
        return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "?"


def price(cost: float | None) -> str:
    """Format a cost in US dollars; a dash when it is unknown."""
    return "—" if cost is None else f"${cost:.2f}"


def request_table(found: Sequence[SavedRequest]) -> Table:
    """Return a table of saved requests."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("Request", "At", "Model", "Sent", "Received"):
        table.add_column(name, justify="left" if name in {"At", "Model"} else "right")
    for each in found:
        cells = (str(each.number), local_time(each.at), each.model, f"{each.size:,} B", f"{each.received:,} B")
        table.add_row(*map(cell, cells))
    return table


# A session as a report: questions, answers and results.

PROGRAMS = frozenset({"ipynb", "py"})
DOCUMENTS = frozenset({"md", "html"})


def write_report(library: Library, info: SessionInfo, format: str, output: Path | None) -> str:
    """Write the report of a session to ``output``, replacing an older one, and return a message for the user.

    Raises:
        UsageError: ``output`` is missing, or its suffix does not fit the format.
    """
    if format not in PROGRAMS | DOCUMENTS:
        raise UsageError(f"A report can't be written as {format}.", "Use md, html, ipynb or py.")
    if output is None:
        raise UsageError("A report needs a file.", f"Add --output report.{format}.")
    if output.suffix.lower() != f".{format}":
        raise UsageError(f"{output.name} does not end in .{format}.", f"Name it {output.stem}.{format}.")
    done = run_loop(_written(library, info, output))
    return f"Wrote {output} ({byte_size(done.size)})."


async def _written(library: Library, info: SessionInfo, output: Path) -> ExportedFile:
    conversation = await asyncio.to_thread(library.view, info.id)
    try:
        datasets = conversation.inventory.feature(Datasets)
        if datasets is None:
            raise UsageError("This session can't be opened for its data.")
        target = str(Path.cwd() / output.expanduser())
        return await datasets.exports.report(target, title=info.title, confirmed=True)
    finally:
        await conversation.close()


app = typer.Typer(no_args_is_help=True)
WHOLE = 10_000
"""Width for output that is not a terminal, in columns."""

Id = Annotated[str, typer.Argument(metavar="ID", help="A session's id, or as much of it as is unambiguous.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_sessions(
    ctx: typer.Context,
    everywhere: Annotated[bool, typer.Option("--all", help="Sessions of all folders.")] = False,
    as_json: AsJson = False,
) -> None:
    """List saved sessions, newest first."""
    infos = _library(ctx).sessions(everywhere=everywhere)
    if as_json:
        _print_json([session_record(info) for info in infos])
    elif infos:
        _print_sessions(infos, Console(), everywhere=everywhere)
    else:
        _say("No sessions." if everywhere else "No sessions in this folder. Use --all for all folders.")


def _print_sessions(infos: Sequence[SessionInfo], console: Console, *, everywhere: bool) -> None:
    """Print a line for each session, cut to the width of a terminal but not for files and pipes."""
    if not console.is_terminal:
        console.width = WHOLE
    console.print(session_table(infos, everywhere=everywhere, width=console.width))


@app.command()
def show(ctx: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Show a session's facts and its turns."""
    library = _library(ctx)
    info = _one(library, id)
    outline = library.outline(info.id)
    if as_json:
        _print_json({**session_record(info), "usage": outline.usage.record, "turns": [*map(as_record, outline.turns)]})
        return
    console = Console()
    facts = Table.grid(padding=(0, 2))
    for label, value in session_facts(info, outline.usage):
        facts.add_row(Text(label, style="dim"), cell(value))
    console.print(facts)
    if not outline.turns:
        return
    console.print()
    number, calls = (max(5, len(str(len(outline.turns)))), 5)
    console.print(Text(f"{'Turn':<{number}}{'At':<18}{'Calls':>{calls}}  Prompt", style="bold"))
    room = max(20, console.width - number - 18 - calls - 2) if console.is_terminal else PROMPT
    for line in outline.turns:
        # Lines, not a table: a table would wait for the last of perhaps thousands of turns.
        head = f"{line.number:<{number}}{local_time(line.at):<18}{line.calls:>{calls}}  "
        sys.stdout.write(head + prompt_text(line, room) + "\n")


@app.command()
def export(
    ctx: typer.Context,
    id: Id,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            metavar="md|html|json|jsonl|ipynb|py|workflow|mermaid|plan-json",
            help="By default from FILE's name, or Markdown. ipynb and py run the queries again; "
            "workflow: the newest turn as a workflow; mermaid, plan-json: the newest plan.",
        ),
    ] = "",
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Not to stdout.")] = None,
    with_secrets: Annotated[
        bool, typer.Option("--with-secrets", help="Include keys and passwords. Do not share the file.")
    ] = False,
    report: Annotated[
        bool, typer.Option("--report", help="Questions, answers and results alone (md, html, ipynb, py).")
    ] = False,
) -> None:
    """Write a session for people (Markdown, HTML) or programs. Recognised keys and passwords are left out."""
    suffix = output.suffix.lstrip(".").lower() if output else ""
    chosen = format or (suffix if suffix in {"html", "json", "jsonl", *PROGRAMS} else "md")
    if report or chosen in PROGRAMS:
        if with_secrets:
            raise UsageError("A report never contains secrets.", "Leave --with-secrets out.")
        library = _library(ctx)
        _say(write_report(library, _one(library, id), chosen, output))
        return
    with _named():
        pieces = _library(ctx).export(id, chosen, with_secrets=with_secrets)
    if output is None:
        sys.stdout.writelines(pieces)
        return
    write_output(output, pieces, private=True)
    _say(f"Wrote {output}.")


@app.command()
def request(
    ctx: typer.Context,
    id: Id,
    number: Annotated[
        int | None, typer.Argument(metavar="N", help="Number of the request; without it, list all.")
    ] = None,
    response: Annotated[bool, typer.Option("--response", help="Print the response instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the requests that a session sent to models, or print one exactly as sent.

    Nothing is taken out: a request holds what was typed and read. Keys for the model's server are not part of it.
    """
    library = _library(ctx)
    info = _one(library, id)
    if number is None:
        _list_requests(library.requests(info.id), as_json=as_json)
        return
    body = library.request(info.id, number, response=response)
    sys.stdout.flush()
    sys.stdout.buffer.write(body)


def _list_requests(found: Sequence[SavedRequest], *, as_json: bool) -> None:
    if as_json:
        _print_json([asdict(each) for each in found])
    elif found:
        Console().print(request_table(found))
    else:
        _say("This session has no saved requests.")


@app.command()
def search(
    ctx: typer.Context,
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="All words must occur, in any order.")],
    here: Annotated[bool, typer.Option("--here", help="In sessions of this folder only.")] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Show at most N.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Find sessions by what was said, called or printed in them, newest first."""
    found = _library(ctx).search(" ".join(words), everywhere=not here)
    if as_json:
        _print_json([{**session_record(info), "found": info.found} for info in found[:limit]])
        return
    console = Console(highlight=False)
    for info in found[:limit]:
        facts = " · ".join((local_time(info.updated), count(info.turns, "turn"), one_line(str(info.cwd))))
        console.print(Text.assemble((info.id, "bold"), "  ", one_line(info.title or "Untitled")))
        console.print(Text(f"  {facts}", style="dim"))
        if info.found:
            console.print(Text(f"  {one_line(info.found, max(20, console.width - 2))}"))
    if not found:
        _say("No session contains all of these words.")
    elif len(found) > limit:
        _say(f"{len(found) - limit} more: --limit {len(found)} shows them all.")


@app.command("import")
def import_files(
    ctx: typer.Context,
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Transcripts, one session each.")],
    own_folders: Annotated[
        bool,
        typer.Option("--own-folders", help="Open each session in the folder that its file names."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Take in transcripts of Claude Code (~/.claude/projects) and Codex (~/.codex/sessions), what `opencode export`
    writes, ba's own jsonl exports, and lists of tool results. Only the conversation is taken."""
    library = _library(ctx)
    taken: list[dict[str, Any]] = []
    trouble: list[tuple[Path, BaError]] = []
    for file in files:
        try:
            imported = library.take_in(file, own_folder=own_folders)
        except BaError as error:
            trouble.append((file, error))
            continue
        taken.append({**session_record(imported.info), "source": imported.source, "remarks": list(imported.remarks)})
        if not as_json:
            sys.stdout.write(f"{imported.info.id}\n")
            _say(f"{one_line(imported.source)}: “{imported.info.title}”, {count(imported.info.turns, 'turn')}.")
        for remark in imported.remarks:
            _say(f"  {remark}")
    if as_json:
        _print_json(taken)
    if len(trouble) == 1:
        raise trouble[0][1]
    if trouble:
        for _, error in trouble:
            _say(error.with_hint)
        raise UsageError(f"{len(trouble)} of {len(files)} files were not imported.", "See above for the reasons.")


@app.command()
def prune(
    ctx: typer.Context,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="Not used for this long: 30d, 6m.")
    ] = "",
    keep: Annotated[int | None, typer.Option("--keep", metavar="N", min=0, help="Keep the newest N.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted, without deleting.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Delete old sessions of all folders for good; never one that is open. The ids of what went are printed."""
    if not older_than and keep is None:
        raise UsageError("Say which sessions are old.", "Add --older-than 30d, or --keep 100, or both.")
    library = _library(ctx)
    rule = RetentionRule(seconds_of(older_than) if older_than else None, keep)
    going = sessions_to_prune(library.sessions(everywhere=True), rule, time.time())
    if not going:
        _say("No session is that old.")
        return 0
    if dry_run or not yes:
        _print_sessions(going, Console(stderr=not dry_run), everywhere=True)
    if dry_run:
        return 0
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"Deleting {count(len(going), 'session')} needs --yes here.", "Add --yes.")
        if not typer.confirm(f"Delete {count(len(going), 'session')} for good?", err=True):
            _say("Kept.")
            return 0
    deleted = sum(_deleted(library, info) for info in going)
    _say(f"Deleted {count(deleted, 'session')}.")
    return 0 if deleted == len(going) else 2


def _deleted(library: Library, info: SessionInfo) -> bool:
    """Delete the session; report a failure, for example because another ba has opened it meanwhile."""
    try:
        library.delete(info.id)
    except StorageError as error:
        _say(f"Kept {info.id}: {error}")
        return False
    sys.stdout.write(f"{info.id}\n")
    return True


@app.command()
def rename(ctx: typer.Context, id: Id, title: Annotated[str, typer.Argument(metavar="TITLE")]) -> None:
    """Give a session another title."""
    with _named():
        _library(ctx).rename(id, title)
    _say("Renamed.")


@app.command()
def delete(
    ctx: typer.Context,
    id: Id,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a session for good."""
    library = _library(ctx)
    found, said = id, f"session {id}, which can't be read"
    try:
        info = _one(library, id)
        found, said = info.id, f"“{info.title}” ({info.id}, {count(info.turns, 'turn')})"
    except StorageError as error:
        if not yes:
            _say(str(error))
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"Deleting {found} needs --yes here.", "Add --yes.")
        if not typer.confirm(f"Delete {said}?", err=True):
            _say("Kept.")
            return
    # The library deletes by id only, so a session guessed from words can't be deleted.
    with _named():
        library.delete(id)
    _say(f"Deleted {found}.")


@app.command()
def fork(
    ctx: typer.Context,
    id: Id,
    upto: Annotated[int | None, typer.Option("--upto", metavar="N", help="Copy the first N turns only.")] = None,
) -> None:
    """Copy a session, or its first turns, into a new one, and print the new id."""
    with _named():
        copied = _library(ctx).fork(id, upto)
    sys.stdout.write(f"{copied.id}\n")
    _say(f"Continue in it: ba --resume {copied.id}")


@app.command()
def diff(
    ctx: typer.Context,
    id: Id,
    stat: Annotated[bool, typer.Option("--stat", help="One line per file, without the changes.")] = False,
) -> None:
    """Print what changed in files since a session began, as a patch."""
    info = _one(_library(ctx), id)
    patch = session_patch(places(), info, load(info.cwd).settings.checkpoints, stat=stat)
    if not patch:
        _say("This session changed no files, or the changes were undone.")
    elif sys.stdout.isatty():
        sys.stdout.write(paintable(patch.decode("utf-8", "replace")))
    else:
        # Raw bytes, so that git apply accepts the patch.
        sys.stdout.flush()
        sys.stdout.buffer.write(patch)


def _library(ctx: typer.Context) -> Library:
    given: Any = ctx.obj
    if given is not None:
        return given
    from ba_tui.assembly import connect  # noqa: PLC0415 - a quarter of a second, and --help needs none

    return connect({}, current_folder()).library


def _one(library: Library, id: str) -> SessionInfo:
    """Return the session with this id; a session to delete or show must not be guessed from words."""
    with _named():
        info = library.find(id)
    if id not in info.id:
        raise UsageError(f"There is no session “{id}”.", "See ba sessions list --all.")
    return info


@contextmanager
def _named() -> Generator[None]:
    """Turn the StorageError for an unknown id into a UsageError."""
    try:
        yield
    except SessionNotFound as error:
        raise UsageError(str(error), error.hint) from None


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def _say(line: str) -> None:
    sys.stderr.write(paintable(line) + "\n")
