"""The tool grep: searches the files of a folder for a regular expression, with ripgrep, or with Python if that is
missing. Both run as a child process that ends with the call."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, Literal

from ba_tui.context.files import ignoring_pipe, linked_folders, not_followed
from ba_tui.core.messages import clean_text
from ba_tui.core.results import Prose, ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.secrets.hard_links import secret_file
from ba_tui.permissions.secrets.scanner import NEAR, has_long_secrets, without_fragments
from ba_tui.permissions.secrets.sharing import Secrecy, cut_secrets
from ba_tui.processes.programs import BriefRun, StreamedChild, run_in_thread, stream
from ba_tui.resources import read_regular
from ba_tui.tools.definitions import Definition
from ba_tui.tools.editing.disk import MAX_BYTES, no_file
from ba_tui.tools.editing.documents import detect, plain_lines
from ba_tui.tools.failures import ToolFailure, from_os
from ba_tui.tools.folder_walk import Glob, IgnoreRules

MAX_LINES = 200
MAX_CHARS = 24_000
LINE_CHARS = 300
PATIENCE = 2.0
"""Seconds after which ba checks what a search is waiting for."""
MAX_MEMORY = 2_000_000_000
SECONDS_TO_REFUSE = 10.0
"""Bytes of a search's own memory."""
PYTHON_GREP = Path(__file__).with_name("python_grep.py")
_CARRIAGE_RETURN = regex(r"\r|\\r|\\x0[dD]|\\x\{0*[dD]\}")
_REMARK = regex(r"(.+): ((?:WARNING: stopped searching )?binary file [^:]*\(found .*\))", re.DOTALL)
_NUMBERED = regex(r"(\d+)[:-]")
Mode = Literal["content", "files", "count"]


@frozen
class FileSearch:
    """A search; ``place`` is a resolved file or folder."""

    pattern: str
    place: Path
    mode: Mode = "content"
    glob: str = ""
    ignore_case: bool = False
    context: int = 0

    def for_ripgrep(self, rg: Path) -> list[str]:
        command = [str(rg), "--no-config", "--color=never", "--no-heading", "--with-filename", "--sort=path"]
        command += [
            "--hidden",
            "--no-require-git",
            "--glob=!.git",
            f"--max-columns={LINE_CHARS}",
            "--max-columns-preview",
        ]
        command.append("--null")
        if not _CARRIAGE_RETURN.search(self.pattern):
            command.append("--crlf")
        if self.mode == "content":
            command += ["--line-number", f"--context={self.context}"]
        elif self.mode == "count":
            command.append("--count")
        else:
            command.append("--files-with-matches")
        if self.ignore_case:
            command.append("--ignore-case")
        if self.glob:
            command.append(f"--glob={self.glob}")
        return [*command, f"--regexp={self.pattern}", "--", str(self.place)]

    def for_python(self) -> list[str]:
        flags = f"{self.mode},{int(self.ignore_case)},{self.context},{LINE_CHARS}"
        return [sys.executable, "-P", str(PYTHON_GREP), flags, self.pattern, str(self.place), self.glob]


def grep_tool(
    definition: Definition,
    workspace: Workspace,
    rg: Path | None,
    secrecy: Secrecy = "redact",
    denied: Callable[[Path], bool] = lambda path: False,
) -> Tool:
    """Return grep. It skips files that are ``denied`` or contain secrets, whatever the pattern."""

    def refused(path: Path) -> bool:
        try:
            return secret_file(path, path.stat(), workspace) or denied(path)
        except OSError:
            return True

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        search = FileSearch(
            pattern=args["pattern"],
            place=await asyncio.to_thread(_existing, workspace, args.get("path", ".")),
            mode=args.get("mode", "content"),
            glob=args.get("glob", ""),
            ignore_case=bool(args.get("ignore_case")),
            context=int(args.get("context", 0)),
        )
        if search.glob:
            Glob(search.glob.removeprefix("!"))
        if "\0" in search.pattern + search.glob:
            raise ToolFailure("invalid_parameters", "A NUL cannot be searched for.")
        links = asyncio.create_task(_passed_by(search.place))
        try:
            found = await found_or_rescued(search, rg, refused)
            if not found.cut:
                found = replace(found, links=await links)
        finally:
            links.cancel()
        texts, kinds = await asyncio.to_thread(_shown, found.lines, workspace, secrecy)
        remarks = await asyncio.to_thread(_remarks, found, search.place, workspace)
        return _result(found, texts, search, (remarks, cut_secrets(kinds)))

    return definition.tool(run)


def _existing(workspace: Workspace, text: str) -> Path:
    path = workspace.resolve(text)
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ToolFailure("not_found", f"{workspace.shown(path)} does not exist.", "Search with glob first.") from error
    except OSError as error:
        raise from_os(error, workspace.shown(path)) from error
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise no_file(workspace.shown(path))
    if not os.access(path, os.R_OK):
        raise from_os(PermissionError(), workspace.shown(path))
    return path


@frozen
class MatchedLine:
    """A line of a search's output: a path and the rest. Without a path it separates two groups."""

    path: Path | None
    rest: str = ""
    text: str = ""

    @property
    def matches(self) -> bool:
        """Return whether the line itself matches; a line of context has a dash after its number."""
        found = _NUMBERED.match(self.rest)
        return found is not None and self.rest[found.end(1)] == ":"

    @property
    def number(self) -> int:
        """Return the line number; 0 if there is none."""
        found = _NUMBERED.match(self.rest)
        return int(found[1]) if found else 0


@frozen
class SearchResult:
    """The first lines. ``cut``: there are more; ``unread``: a file could not be read."""

    lines: list[MatchedLine]
    cut: bool
    unread: bool = False
    left_out: Path | None = None
    """An ignore file that is a pipe, and was not read."""
    links: Sequence[Path] = ()
    """Links to folders that were not followed."""


class PipeWait(ToolFailure):
    """Raised when ripgrep waits for an ignore file that is a pipe."""

    def __init__(self, file: Path) -> None:
        super().__init__("execution_error", f"{file} is a pipe, not a file: the search would wait for it.")
        self.file = file


async def found_lines(command: Sequence[str], search: FileSearch, refused: Callable[[Path], bool]) -> SearchResult:
    """Return the first lines of ``command``'s output without those of ``refused`` files, which may be slow to check.
    Raises ToolFailure, PipeWait."""
    process = await stream(command, _environment(), MAX_MEMORY)
    unread, held, stop = False, list[Path](), Event()
    ours = command[0] == sys.executable
    rescue = None if ours else asyncio.create_task(_rescue(process, search.place, held, stop))
    try:
        lines, cut = await _bounded(process.output, search.mode, refused)
        if held:
            raise PipeWait(held[0])
        if not cut:
            said, failed = await process.errors(), await process.wait() not in {0, 1}
            unread = failed and b"os error" in said
            if failed and not lines and await _refuses(command, search):
                raise ToolFailure("invalid_parameters", f"The search failed: {_first_words(said, search.place)}")
    finally:
        stop.set()
        if rescue:
            rescue.cancel()
        await asyncio.shield(asyncio.ensure_future(process.close()))
    return SearchResult(lines, cut, unread)


async def found_or_rescued(search: FileSearch, rg: Path | None, refused: Callable[[Path], bool]) -> SearchResult:
    """Search as ``found_lines`` does, with ripgrep, or with Python if that is missing or would wait for a pipe."""
    if rg is None:
        return await found_lines(search.for_python(), search, refused)
    try:
        return await found_lines(search.for_ripgrep(rg), search, refused)
    except PipeWait as waiting:
        return replace(await found_lines(search.for_python(), search, refused), left_out=waiting.file)


async def _passed_by(place: Path) -> Sequence[Path]:
    """Return the links to folders below ``place`` that are not ignored."""
    if not place.is_dir():
        return ()
    links = await linked_folders(place)
    return await asyncio.to_thread(lambda: [link for link in links if not IgnoreRules.ignored(link, place)])


async def _rescue(process: StreamedChild, place: Path, held: list[Path], stop: Event) -> None:
    """End a search that would wait forever, and note the pipe."""
    await asyncio.sleep(PATIENCE)
    if pipe := await asyncio.to_thread(ignoring_pipe, place, stop):
        held.append(pipe)
        process.kill()


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG", "LC_ALL"}}
    return {**kept, "RUST_BACKTRACE": "0"}


async def _refuses(command: Sequence[str], search: FileSearch) -> bool:
    """Return whether the pattern is invalid. A search with an unreadable file has the same exit code."""
    nowhere = [os.devnull if word == str(search.place) else word for word in command]
    done = await run_in_thread(BriefRun(nowhere, SECONDS_TO_REFUSE, environment=_environment()))
    return done.code not in {0, 1}


async def _bounded(
    output: asyncio.StreamReader, mode: Mode, refused: Callable[[Path], bool]
) -> tuple[list[MatchedLine], bool]:
    """Return the first lines, and whether there are more."""
    lines: list[MatchedLine] = []
    known: dict[Path, bool] = {}
    size = 0
    while raw := await _record(output, mode):
        if len(lines) >= MAX_LINES or size >= MAX_CHARS:
            return lines, True
        line = _read(os.fsdecode(raw).rstrip("\r\n"))
        if line.path:
            if line.path not in known:
                known[line.path] = await asyncio.to_thread(refused, line.path)
            if known[line.path]:
                continue
        size += len(line.text) + len(line.rest) + len(line.path.name if line.path else "") + 2
        lines.append(line)
    return lines, False


def _read(line: str) -> MatchedLine:
    path, found, rest = line.partition("\0")
    if not found and (remark := _REMARK.fullmatch(line)):
        path, found, rest = remark[1], ":", f" {remark[2]}"
    return MatchedLine(Path(path), rest) if found else MatchedLine(None, text=line)


async def _record(stream: asyncio.StreamReader, mode: Mode) -> bytes:
    """Read a path with its line, or the separator of two groups; empty at the end."""
    end = b"\0" if mode == "files" else b"\n"
    record = b""
    while True:
        try:
            record += await stream.readuntil(end)
        except asyncio.IncompleteReadError as error:
            return record + error.partial
        except asyncio.LimitOverrunError as error:
            await stream.readexactly(error.consumed)
            continue
        # A name with a line end continues on the next line.
        if b"\0" in record or record == b"--\n" or _REMARK.fullmatch(record.decode("utf-8", "replace").rstrip("\n")):
            return record


def _first_words(said: bytes, place: Path) -> str:
    lines = [
        line for line in said.decode("utf-8", "replace").replace(str(place), place.name).splitlines() if line.strip()
    ]
    return " ".join(lines[:6]) or "no reason was given"


def _shown(lines: Sequence[MatchedLine], workspace: Workspace, secrecy: Secrecy) -> tuple[list[str], tuple[str, ...]]:
    """Return the lines to show, without secrets that are cut at their ends, and the kinds of these secrets. Reads
    the files."""
    files: dict[Path, _FileLines] = {}
    texts: list[str] = []
    kinds: dict[str, None] = {}
    for line in lines:
        rest = line.rest
        if line.path and line.number and secrecy != "allow":
            if line.path not in files:
                files[line.path] = _searched(line.path)
            rest, cut = without_fragments(rest, files[line.path].around(line.number))
            kinds |= dict.fromkeys(cut)
        path = workspace.shown(line.path).replace("\n", "\\n") if line.path else line.text
        texts.append(clean_text(path + (f":{rest}" if rest else "")))
    return texts, tuple(kinds)


@frozen
class _FileLines:
    """The lines of a file, and whether secrets in it may have several lines."""

    lines: list[str]
    keys: bool

    def around(self, number: int) -> str:
        """Return line ``number`` with the lines around it that a secret may include."""
        near = NEAR if self.keys else 0
        return "\n".join(self.lines[max(0, number - 1 - near) : number + near])


def _searched(path: Path) -> _FileLines:
    try:
        data = read_regular(path, MAX_BYTES)
    except OSError:
        return _FileLines([], keys=False)
    text = plain_lines(detect(data).decode(data))
    return _FileLines(text.split("\n"), keys=has_long_secrets(text))


def _tally(found: SearchResult, search: FileSearch) -> str:
    """Return the number of matches and files, without lines of context."""
    more = "+" if found.cut else ""
    files = len({line.path for line in found.lines if line.path})
    if search.mode == "files":
        return f"{files:,}{more} file{'' if files == 1 else 's'}"
    if search.mode == "count":
        matches = sum(int(line.rest) for line in found.lines if line.rest.isdecimal())
    else:
        matches = sum(line.matches for line in found.lines)
    return f"{matches:,}{more} match{'' if matches == 1 else 'es'} in {files:,} file{'' if files == 1 else 's'}"


def _remarks(found: SearchResult, place: Path, workspace: Workspace) -> str:
    """Return notes on what was not searched, one per line. Blocks."""
    remarks = ["[some files or folders could not be read]"] if found.unread else []
    if found.left_out:
        remarks.append(f"[{workspace.shown(found.left_out)} is a pipe, not a file: it was left out]")
    remarks.append(not_followed(found.links, place, workspace.shown))
    return clean_text("".join(f"\n{remark}" for remark in remarks if remark))


def _result(found: SearchResult, lines: list[str], search: FileSearch, told: tuple[str, dict[str, Any]]) -> ToolResult:
    cut, (unread, meta) = found.cut, told
    if not lines:
        where = " in files that fit " + search.glob if search.glob else ""
        return ToolResult(f"No match for {search.pattern!r}{where}.{unread}", summary="no match")
    unit = "file" if search.mode != "content" else "line"
    summary = _tally(found, search)
    if cut:
        lines = [*lines, f"[only the first {len(lines)} {unit}s; search a smaller folder, or use mode files or count]"]
    text = "\n".join(lines) + unread
    kind = "listing" if search.mode == "files" else "hits"
    return ToolResult(text, Prose(text), summary=summary, kind=kind, meta=meta)
