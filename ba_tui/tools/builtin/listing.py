"""The tools list_files and glob: what lies in a folder, and which paths fit a pattern.

Searching inside files is search.py.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ba_tui.context.links import not_followed
from ba_tui.core.messages import clean_text
from ba_tui.core.results import Prose, ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.permissions.paths import Workspace
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failed import Failed, from_os
from ba_tui.tools.globbing import Glob
from ba_tui.tools.ignoring import FolderWalk, WalkedFile, walked

MAX_ENTRIES = 400
_MAGIC = regex(r"[*?\[{]")
DEEPEST = 10
"""Levels of the longest listing, as its schema says."""


def list_files_tool(definition: Definition, workspace: Workspace) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        walk = FolderWalk(depth=int(args.get("depth", 2)), everything=bool(args.get("all")))
        return await _stoppable(walk, _list, workspace, args.get("path", "."), walk)

    facts = ToolFacts(category="files", target="path", paths=("path",), bulky=True)
    return Tool("list_files", definition.description, definition.input_schema, run, facts=facts)


def glob_tool(definition: Definition, workspace: Workspace) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        walk = FolderWalk()
        return await _stoppable(walk, _glob, workspace, args, walk)

    facts = ToolFacts(category="files", target="pattern", paths=("path",), bulky=True)
    return Tool("glob", definition.description, definition.input_schema, run, facts=facts)


async def _stoppable(walk: FolderWalk, work: Any, *args: Any) -> ToolResult:
    """Run ``work`` in a thread that ends soon after the call is cancelled."""
    try:
        return await asyncio.to_thread(work, *args)
    finally:
        walk.stop.set()


def existing_folder(workspace: Workspace, text: str) -> Path:
    """The folder that ``text`` names. Raises Failed, PathRefused."""
    path = workspace.resolve(text)
    shown = workspace.shown(path)
    try:
        with os.scandir(path):
            return path
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise from_os(error, shown) from error
    if path.exists():
        raise Failed("validation_error", f"{shown} is a file, not a folder.", "Use read_file for files.")
    raise Failed("not_found", f"The folder {shown} does not exist.", "Search with glob, or list the folder above.")


def _list(workspace: Workspace, text: str, walk: FolderWalk) -> ToolResult:
    folder = existing_folder(workspace, text)
    lines: list[str] = []
    total = 0
    for entry in walked(folder, walk):
        total += 1
        if total <= MAX_ENTRIES:
            lines.append(_line(entry))
    if not lines:
        return ToolResult(f"{workspace.shown(folder)} holds no files (ignored ones are left out).", summary="empty")
    if total > MAX_ENTRIES:
        lines.append(f"[{MAX_ENTRIES} of {total}{'+' if walk.cut else ''} entries; list a folder below, or use glob]")
    if walk.deeper and walk.depth >= DEEPEST:
        lines.append(f"[folders with … hold more, deeper than {walk.depth} levels; list one of them]")
    if links := not_followed(walk.links, folder, workspace.shown):
        lines.append(links)
    listing = clean_text("\n".join(lines))
    return ToolResult(listing, Prose(listing), summary=count(total, "entry"), kind="listing")


def _line(entry: WalkedFile) -> str:
    indent = "  " * (entry.depth - 1)
    name = entry.name.replace("\n", "\\n")
    if entry.link is not None:
        return f"{indent}{name} -> {entry.link} (symlink)"
    if entry.folder:
        return f"{indent}{name}/{' …' if entry.more else ''}"
    return f"{indent}{name}"


def _glob(workspace: Workspace, args: Mapping[str, Any], walk: FolderWalk) -> ToolResult:
    pattern: str = args["pattern"]
    folder = existing_folder(workspace, args.get("path", "."))
    wanted = Glob(pattern)
    below, begun = _through_links(workspace, folder, pattern)
    found = [
        workspace.shown(Path(entry.path)).replace("\n", "\\n") + ("/" if entry.folder else "")
        for entry in walked(below, walk)
        if wanted.fits(begun + os.path.relpath(entry.path, below), folder=entry.folder)
    ]
    unseen: list[str] = []
    if walk.cut:
        unseen.append(f"[only the first {walk.limit:,} entries were looked at; name a folder below as path]")
    if walk.deeper:
        unseen.append(f"[what lies more than {walk.depth} folders deep was not looked at; name a folder below as path]")
    if links := not_followed(walk.links, below, workspace.shown):
        unseen.append(links)
    if not found:
        text = f"No path fits {pattern!r} in {workspace.shown(folder)} (ignored files are left out)."
        return ToolResult(clean_text("\n".join([text, *unseen])), summary="no match")
    lines = found[:MAX_ENTRIES]
    if len(found) > MAX_ENTRIES:
        lines.append(f"[{len(lines)} of {len(found)}{'+' if walk.cut else ''} paths; use a narrower pattern]")
    listing = clean_text("\n".join([*lines, *unseen]))
    summary = count(len(found), "path")
    return ToolResult(listing, Prose(listing), summary=summary, kind="listing")


def _through_links(workspace: Workspace, folder: Path, pattern: str) -> tuple[Path, str]:
    """Return the folder that the last link in the plain start of a pattern leads to, and that start up to the link;
    else ``folder`` and nothing. A link out of the workspace is not followed: no rule judges patterns."""
    names = pattern.removeprefix("./").rstrip("/").split("/")[:-1]
    plain = list(itertools.takewhile(lambda name: name and not _MAGIC.search(name), names))
    for upto in range(len(plain), 0, -1):
        place = folder.joinpath(*plain[:upto])
        if place.is_symlink() and place.is_dir() and workspace.contains(real := Path(os.path.realpath(place))):
            return real, "/".join([*plain[:upto], ""])
    return folder, ""
