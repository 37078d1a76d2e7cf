"""``ba memory``: list, search, show, edit, forget, export, import, rebuild and count memory entries.

Results go to stdout, everything else to stderr.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from ba_tui.cli.config import Cwd, editor_for, folder_of, load, open_in, print_facts, print_line, say
from ba_tui.cli.sessions import cell, local_time
from ba_tui.cli.streams import write_output
from ba_tui.core.errors import SecretRefused, UsageError, run_loop
from ba_tui.core.ports.memory import Entry, RecalledEntry, Scope
from ba_tui.core.text.json_text import read_object
from ba_tui.core.text.wording import byte_size, count, one_line
from ba_tui.core.values import frozen
from ba_tui.features.memory.engine.setup import StoreSetup, setup_of
from ba_tui.features.memory.engine.store import MemoryStore
from ba_tui.features.memory.tools.names import MemoryNames, named_settings
from ba_tui.features.memory.tools.session_memory import SessionMemory
from ba_tui.features.memory.tools.storing import EntryWriter, Owner, PendingFacts
from ba_tui.permissions.secrets.scanner import find
from ba_tui.processes.scratch import scratch
from ba_tui.resources import folder_slug, places, project_root

T = TypeVar("T")
PAGE = 5_000
"""Entries per read when all are needed."""
NAMED = 3
"""Maximum entries that a message about an ambiguous id names."""
SEE = "`ba memory list` shows all ids."
app = typer.Typer(no_args_is_help=True)
WHOLE = 10_000
"""Columns of an output that is not a terminal."""
SHOWN = 60
"""Maximum characters of an entry in a message."""

Id = Annotated[str, typer.Argument(metavar="ID", help="An entry's id, or as much of it as is unambiguous.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Project = Annotated[bool, typer.Option("--project", help="Only this project's.")]
Global = Annotated[bool, typer.Option("--global", help="Only those that count in all projects.")]
Everywhere = Annotated[bool, typer.Option("--all-projects", help="Those of all projects.")]


@app.command("list")
def list_entries(
    project: Project = False,
    global_: Global = False,
    everywhere: Everywhere = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Print at most N.")] = 200,
    json_: Json = False,
    cwd: Cwd = None,
) -> int:
    """List what is remembered for this project and for all: pinned entries, then the newest."""
    scope = _scope(project=project, global_=global_, everywhere=everywhere)

    async def listed(opened: OpenedMemory) -> tuple[list[Entry], int]:
        state = await opened.store.state()
        if state.newer:
            say(state.newer)
        return await opened.store.listed(scope, 0, limit + 1), state.skipped

    found = with_each_memory(listed) if everywhere else [with_memory(cwd, listed)]
    # Global entries are part of each project's memory.
    entries = list({entry.id: entry for each, _ in found for entry in each}.values())
    if everywhere:
        entries.sort(key=lambda entry: (not entry.pinned, -entry.at))
    if skipped := max((skipped for _, skipped in found), default=0):
        say(f"{count(skipped, 'line')} of the log cannot be read; they are kept aside. See ba memory stats.")
    _print(entries[:limit], json_=json_, projects=everywhere)
    if len(entries) > limit:
        say("There are more: --limit N prints at most N, and ba memory search finds the others.")
    if not entries:
        say("Nothing is remembered yet. In the app, type “# TEXT”.")
    return 0


@app.command()
def search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="What to look for, in your words.")],
    project: Project = False,
    global_: Global = False,
    everywhere: Everywhere = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Print at most N.")] = 20,
    json_: Json = False,
    cwd: Cwd = None,
) -> int:
    """Find entries by meaning and by words, best first."""
    scope = _scope(project=project, global_=global_, everywhere=everywhere)

    async def found(opened: OpenedMemory) -> tuple[Sequence[RecalledEntry], str]:
        recollection = await opened.memory.find(" ".join(words), limit=limit, scope=scope)
        return recollection.found, "" if everywhere else recollection.why

    searched = with_each_memory(found) if everywhere else [with_memory(cwd, found)]
    hits = sorted({hit.entry.id: hit for each, _ in searched for hit in each}.values(), key=lambda hit: -hit.score)
    for why in {why for _, why in searched if why}:
        say(why)
    if json_:
        hit_records = [{**entry_record(hit.entry), "score": hit.score, "why": hit.why} for hit in hits[:limit]]
        print_line(json.dumps(hit_records, indent=2, ensure_ascii=False))
    else:
        _print([hit.entry for hit in hits[:limit]], json_=False, projects=everywhere)
    if not hits:
        say("Nothing fits these words.")
    return 0


@app.command()
def show(id: Id, json_: Json = False, cwd: Cwd = None) -> int:
    """Show one entry with all that is known of it, and the entries that it replaced."""

    async def found(opened: OpenedMemory) -> tuple[Entry, Sequence[Entry]]:
        entry = await entry_of(opened, id)
        return entry, (await opened.memory.history(entry.id))[1:]

    entry, older = with_memory(cwd, found)
    if json_:
        record = {**entry_record(entry), "history": [entry_record(each) for each in older]}
        print_line(json.dumps(record, indent=2, ensure_ascii=False))
        return 0
    print_facts({label: fact for label, fact in entry_facts(entry).items() if fact}, entry.text)
    for each in older:
        print_line(f"\nBefore ({each.id}):\n{each.text}")
    return 0


@app.command()
def edit(
    id: Id,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The new text; without it, $EDITOR opens.")] = "",
    cwd: Cwd = None,
) -> int:
    """Change the text of an entry."""

    async def changed(opened: OpenedMemory) -> Entry:
        entry = await entry_of(opened, id)
        new = text.strip() or _edited(entry.text)
        return entry if new == entry.text else await opened.memory.edit(entry.id, new)

    entry = with_memory(cwd, changed)
    print_line(entry.id)
    say(f"It says now: “{one_line(entry.text, SHOWN)}”")
    return 0


def _edited(text: str) -> str:
    """Return ``text`` as the user edited it in their editor."""
    editor = editor_for('write the text behind the id: ba memory edit ID "TEXT"')
    with tempfile.NamedTemporaryFile("w", prefix="ba-memory-", suffix=".md", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        open_in(editor, Path(file.name))
        # Some editors replace the file.
        return Path(file.name).read_text("utf-8", "replace").strip()


@app.command()
def forget(
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="Entries, by their ids.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    cwd: Cwd = None,
) -> int:
    """Remove entries for good: from the log, the indexes and the vectors. Their ids are printed."""

    async def forgotten(opened: OpenedMemory) -> list[Entry]:
        entries = [await entry_of(opened, id) for id in ids]
        if not yes and not _agreed(entries):
            return []
        await opened.store.forget([entry.id for entry in entries])
        return entries

    gone = with_memory(cwd, forgotten)
    for entry in gone:
        print_line(entry.id)
    say(f"Forgot {count(len(gone), 'memory')}." if gone else "Nothing was forgotten.")
    return 0 if gone else 1


def _agreed(entries: Sequence[Entry]) -> bool:
    for entry in entries:
        say(f"{entry.id}  “{one_line(entry.text, SHOWN)}”")
    if not sys.stdin.isatty():
        raise UsageError("Forgetting needs a yes, and there is no terminal to ask in.", "Add --yes.")
    return typer.confirm(f"Forget {count(len(entries), 'memory')} for good?", err=True)


@app.command("export")
def export_entries(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to FILE instead of stdout.")
    ] = None,
    cwd: Cwd = None,
) -> int:
    """Write all entries of this project and the global ones as JSON lines. `ba memory import` reads them."""
    if output is not None and output.is_dir():
        raise UsageError(f"{output} is a folder.", "Name a file.")
    with scratch("memory") as near:
        path = near / "memory.jsonl"
        number = with_memory(cwd, lambda opened: opened.store.export(path))
        with path.open("rb") as file:
            if output:
                write_output(output, file, private=True)
            else:
                sys.stdout.flush()
                shutil.copyfileobj(file, sys.stdout.buffer)
    say(f"Exported {count(number, 'entry')}{f' to {output}' if output else ''}.")
    return 0


@app.command("import")
def import_entries(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `ba memory export` wrote.")],
    json_: Json = False,
    cwd: Cwd = None,
) -> int:
    """Add the entries of an exported file. Those of any project become this project's; known ones stay as they are."""
    _check_secrets(file)
    imported = with_memory(cwd, lambda opened: opened.store.import_(file))
    if json_:
        print_line(json.dumps(asdict(imported)))
    else:
        say(f"Imported {count(imported.new, 'entry')}; {imported.known:,} known already.")
    if imported.bad:
        say(f"{count(imported.bad, 'line')} of {file} could not be read and was left out.")
    return 0


def _check_secrets(file: Path) -> None:
    """Raise SecretRefused if an entry of an exported ``file`` contains a secret."""

    # The import itself reports an unreadable file.
    with suppress(OSError), file.open("rb") as lines:
        for number, data in enumerate(lines, 1):
            texts = [text for text in (read_object(data) or {}).values() if isinstance(text, str)]
            if secrets := find("\n".join(texts)):
                raise SecretRefused(
                    f"Nothing is imported: line {number:,} of {file} holds a secret ({secrets[0].kind}).",
                    "Remove the line. Memory never keeps keys or passwords.",
                )


@app.command()
def bind(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The name; without it, print the one in use.")
    ] = None,
    default: Annotated[bool, typer.Option("--default", help="Use this project's default name again.")] = False,
    cwd: Cwd = None,
) -> int:
    """Choose the name under which this project shares its memory on a team's server (`memory.url`)."""
    if name and default:
        raise UsageError("NAME and --default exclude each other.", "Leave one of them.")
    if name == "":
        raise UsageError("The memory name is empty.", "Give a name, or --default for the default name.")
    root, names = project_root(folder_of(cwd)), MemoryNames(places())
    if name or default:
        names.bind(root, name or "")
    shared = names.shared(load(cwd), places(), root)
    used = shared.name or folder_slug(root)
    print_line(used)
    if name and used != name:
        say(f"Saved, but your own settings name {used}, and they win. See ba config show memory.project.")
    elif name and (others := names.others(name, root)):
        say(f"Memory under this name is also that of {', '.join(others)}.")
    if shared.proposed and not (name or default):
        say(f"{shared.proposed.notice.text} {shared.proposed.notice.hint}")
    return 0


@app.command()
def rebuild(cwd: Cwd = None) -> int:
    """Rebuild the indexes from the log. Entries do not change, and stored vectors are reused."""
    columns = (TextColumn("Indexing"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        async def rebuilt(opened: OpenedMemory) -> int:
            await opened.store.rebuild(lambda done, total: bar.update(task, completed=done, total=total))
            return (await opened.store.state()).entries

        number = with_memory(cwd, rebuilt)
    say(f"The index holds {count(number, 'entry')}.")
    return 0


@app.command()
def stats(everywhere: Everywhere = False, json_: Json = False, cwd: Cwd = None) -> int:
    """Count entries by scope and kind; name the embedder, the space on the disk, and how many lines are damaged."""
    counted = with_each_memory(_counted) if everywhere else [with_memory(cwd, _counted)]
    if json_:
        print_line(json.dumps({"folder": str(places().memory), "projects": counted}, indent=2))
        return 0
    for each in counted:
        skipped, scopes = each["skipped"], each["scopes"]
        facts = {
            "Project": each["project"],
            "Entries": f"{scopes['project']:,} of the project, {scopes['global']:,} global",
            "Kinds": ", ".join(f"{number:,} {kind}" for kind, number in each["kinds"].items()),
            "Pinned": f"{each['pinned']:,}",
            "Replaced": f"{each['replaced']:,}",
            "Embedder": each["why"] or each["embedder"],
            "On disk": byte_size(each["size"]),
            "Damaged": f"{count(skipped, 'line')}, kept aside" if skipped else "none",
        }
        print_facts(facts)
        print_line("")
    print_facts({"Folder": str(places().memory)})
    return 0


async def _counted(opened: OpenedMemory) -> dict[str, Any]:
    kinds, scopes, marks = Counter[str](), Counter[str](project=0, **{"global": 0}), Counter[str]()
    async for entry in every_entry(opened):
        kinds[entry.kind] += 1
        scopes[scope_of(entry)] += 1
        marks["pinned"] += entry.pinned
        marks["replaced"] += bool(entry.superseded_by)
    state = asdict(await opened.store.state())
    found = {name: state[name] for name in ("entries", "size", "why", "indexed", "skipped")}
    return {
        "project": opened.project, "embedder": opened.embedder, **found, "kinds": dict(kinds), "scopes": dict(scopes),
        "pinned": marks["pinned"], "replaced": marks["replaced"],
    }  # fmt: skip


def _scope(*, project: bool, global_: bool, everywhere: bool) -> Scope | None:
    if project + global_ + everywhere > 1:
        raise UsageError("--project, --global and --all-projects exclude each other.", "Leave one of them.")
    return "project" if project else "global" if global_ else None


def _print(entries: Sequence[Entry], *, json_: bool, projects: bool) -> None:
    """Print lines: cut to the width of a terminal, unshortened for a file or another program."""
    if json_:
        print_line(json.dumps([entry_record(entry) for entry in entries], indent=2, ensure_ascii=False))
    elif entries:
        console = Console()
        if not console.is_terminal:
            console.width = WHOLE
        console.print(entry_table(entries, projects=projects))


@frozen
class OpenedMemory:
    """``store`` has the entries of ``project`` and global ones; ``memory`` is the app's view of it. ``embedder`` makes
    the vectors.
    """

    project: str
    embedder: str
    store: MemoryStore
    memory: SessionMemory


def with_memory(cwd: Path | None, work: Callable[[OpenedMemory], Awaitable[T]]) -> T:
    """Run ``work`` with the memory of the project that ``cwd`` belongs to."""
    root = project_root(folder_of(cwd))
    settings, notices = named_settings(load(cwd), places(), root)
    for notice in notices:
        say(f"{notice.text} {notice.hint}")
    return _run(folder_slug(root), setup_of(settings.memory, folder_slug(root), _variable), work)


def with_each_memory(work: Callable[[OpenedMemory], Awaitable[T]]) -> list[T]:
    """Run ``work`` with the memory of each project in turn. They are searched by words."""
    folder = places().memory / "projects"
    names = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return [_run(name, StoreSetup(embedder="off"), work) for name in names]


def _run(project: str, setup: StoreSetup, work: Callable[[OpenedMemory], Awaitable[T]]) -> T:
    # Commands report the state of the search themselves.
    logging.getLogger("ba_tui.features.memory.engine").addHandler(logging.NullHandler())

    async def run() -> T:
        store = MemoryStore(places().memory, project, setup)
        storing = EntryWriter(lambda: store, lambda: True, Owner(project))
        try:
            return await work(
                OpenedMemory(project, setup.embedder, store, SessionMemory(storing, PendingFacts(storing), tuple))
            )
        finally:
            await store.close()

    return run_loop(run())


async def every_entry(opened: OpenedMemory, scope: Scope | None = None) -> AsyncIterator[Entry]:
    """Yield all entries, pinned ones first, then newest first."""
    offset = 0
    while page := await opened.store.listed(scope, offset, PAGE):
        for entry in page:
            yield entry
        offset += len(page)


async def entry_of(opened: OpenedMemory, id: str) -> Entry:
    """Return the entry whose id is ``id`` or begins with it. Raises UsageError: there is none, or more than one."""
    if found := (await opened.store.get([id])).get(id):
        return found
    fitting = [entry async for entry in every_entry(opened) if id and entry.id.startswith(id)]
    if not fitting:
        raise UsageError(f"There is no memory {id!r} in this project or among the global ones.", SEE)
    if len(fitting) > 1:
        named = ", ".join(f"{each.id} “{one_line(each.text, 30)}”" for each in fitting[:NAMED])
        more = f" and {len(fitting) - NAMED:,} more" if len(fitting) > NAMED else ""
        raise UsageError(f"{id!r} is the beginning of {len(fitting):,} ids: {named}{more}.", "Write more of the id.")
    return fitting[0]


def _variable(name: str) -> str:
    return os.environ.get(name, "")


LEAST_TEXT = 20
"""Minimum columns for texts in a narrow terminal."""


def entry_record(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON: all fields, and its scope."""
    return {"scope": scope_of(entry), **asdict(entry)}


def scope_of(entry: Entry) -> str:
    return "project" if entry.project else "global"


def state_of(entry: Entry) -> str:
    return "replaced" if entry.superseded_by else "pinned" if entry.pinned else ""


def entry_table(entries: Sequence[Entry], *, projects: bool) -> Table:
    """Return a table with one line per entry; ``projects`` names their projects."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("Id", no_wrap=True)
    table.add_column("Memory", no_wrap=True, overflow="ellipsis", min_width=LEAST_TEXT, ratio=1)
    shared = any(entry.server for entry in entries)
    for name in ("Kind", "Scope", "State", "Stored", *(("Team server",) if shared else ())):
        table.add_column(name, no_wrap=True)
    for entry in entries:
        scope = entry.project if projects and entry.project else scope_of(entry)
        stored = local_time(entry.at) if entry.at else ""
        cells = (entry.id, entry.text, entry.kind, scope, state_of(entry), stored)
        table.add_row(*map(cell, (*cells, entry.server) if shared else cells))
    return table


def _source(entry: Entry) -> str:
    said = entry.speaker or ("" if entry.server else entry.origin)
    return ", ".join(filter(None, (said, f"team server {entry.server}" if entry.server else "")))


def entry_facts(entry: Entry) -> dict[str, str]:
    """Return the known fields of an entry by label."""
    return {
        "Id": entry.id,
        "Kind": entry.kind,
        "Scope": f"project {entry.project}" if entry.project else "global",
        "State": state_of(entry) or "current",
        "About": " · ".join(filter(None, (entry.subject, entry.attribute))),
        "From": _source(entry),
        "Session": entry.session,
        "Stored": local_time(entry.at) if entry.at else "",
        "Used": f"{entry.used}, last {local_time(entry.last_used)}" if entry.used else "never",
        "Replaces": entry.supersedes,
        "Replaced by": entry.superseded_by,
        "Vector": entry.model,
    }
