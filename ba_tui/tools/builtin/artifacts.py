"""The tool read_artifact: parts of a stored result, by lines, by a search, or by a path in JSON."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import StorageError
from ba_tui.core.results import Artifact, LineMatch, Prose, Source, ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import byte_size, count, similar
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.secrets.scanner import AROUND, NEAR, lines_without_fragments, redact_value, without_fragments
from ba_tui.permissions.secrets.sharing import Secrecy, cut_secrets
from ba_tui.processes.terminal_text import plain
from ba_tui.sessions.artifact_contents import WHOLE, parse_json
from ba_tui.sessions.artifacts import Artifacts
from ba_tui.tools.builtin.search import FileSearch, found_lines
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failures import ToolFailure
from ba_tui.tools.formats import FORMATS

PART_BYTES = 18_000
"""Bytes of a part, which with line numbers fits into a result."""
DEFAULT_LINES = 200
MAX_LINES = 1_000
DEFAULT_HITS = 50
WAYS = ("search", "path", "byte")
_INDEX = regex(r"\[(\d+)\]")
_PRINTED = regex(r":?(\d+):(.*)", re.DOTALL)


def read_artifact_tool(
    definition: Definition, artifacts: Artifacts, rg: Path | None, secrecy: Secrecy = "redact"
) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        ways = [way for way in WAYS if way in args]
        if len(ways) > 1:
            raise ToolFailure(
                "invalid_parameters", f"{' and '.join(ways)} can't be used together.", "Give one of them."
            )
        ref: str = args["ref"]
        try:
            artifact = await asyncio.to_thread(artifacts.about, ref)
            if "search" in args and args.get("regex"):
                hits, more = await _matching(artifacts, rg, args)
            elif "search" in args:
                most = _hits_wanted(args)
                found = await asyncio.to_thread(
                    artifacts.search, ref, args["search"], most + 1, int(args.get("offset", 1))
                )
                hits, more = found[:most], len(found) > most
            else:
                read = _at_path if "path" in args else _at_byte if "byte" in args else _lines
                return await asyncio.to_thread(read, _ReadableResult(artifacts, artifact, secrecy), args)
            return await asyncio.to_thread(_hits, _ReadableResult(artifacts, artifact, secrecy), args, hits, more=more)
        except StorageError as error:
            raise ToolFailure("not_found", str(error), error.hint) from error

    return definition.tool(run)


@frozen
class _ReadableResult:
    """A stored result, read in parts."""

    artifacts: Artifacts
    artifact: Artifact
    secrecy: Secrecy

    def uncut(self, lines: Sequence[str], start: int) -> tuple[list[str], tuple[str, ...]]:
        """Return ``lines`` from line ``start`` on without secrets that are cut at their ends, and the kinds of these
        secrets."""
        if self.secrecy == "allow":
            return list(lines), ()
        first = max(1, start - NEAR)
        near = self.artifacts.lines(self.artifact.ref, first, start - first + len(lines) + NEAR, 3 * AROUND)
        return lines_without_fragments(lines, plain(near.text))


def _lines(stored: _ReadableResult, args: Mapping[str, Any]) -> ToolResult:
    artifacts, artifact = stored.artifacts, stored.artifact
    start, wanted = int(args.get("offset", 1)), min(int(args.get("limit", DEFAULT_LINES)), MAX_LINES)
    page = artifacts.lines(artifact.ref, start, wanted, PART_BYTES)
    if not page.text:
        if not artifact.size:
            return ToolResult("The result is empty.", summary="empty")
        message = f"{artifact.ref} has {count(artifact.lines, 'line')}; line {start} is beyond its end."
        raise ToolFailure("validation_error", message, "Use a smaller offset.")
    lines = _clean_lines(page.text)
    given, kinds = stored.uncut(lines, start)
    numbered = "\n".join(f"{number}\t{line}" for number, line in enumerate(given, start))
    end = start + len(lines) - 1
    notes = [f"lines {start:,} to {end:,} of {artifact.lines:,}"]
    if not page.last:
        on = f"offset {end + 1}" if page.text.endswith("\n") else f"byte {page.upto}: line {end} is longer"
        notes.append(f"go on with {on}")
    display = Source(artifact.ref, "\n".join(lines), start)
    text = f"{numbered}\n[{'; '.join(notes)}]"
    return ToolResult(text, display, summary=notes[0], meta=cut_secrets(kinds))


def _clean_lines(text: str) -> list[str]:
    return [plain(line) for line in text.removesuffix("\n").split("\n")]


def _at_byte(stored: _ReadableResult, args: Mapping[str, Any]) -> ToolResult:
    artifacts, artifact = stored.artifacts, stored.artifact
    offset = int(args["byte"])
    if offset >= artifact.size:
        message = f"{artifact.ref} has {count(artifact.size, 'byte')}; {offset} is beyond its end."
        raise ToolFailure("validation_error", message, "Use a smaller one.")
    page = artifacts.read(artifact.ref, offset, PART_BYTES)
    where = f"bytes {page.offset:,} to {page.upto:,} of {page.size:,}"
    on = "" if page.last else f"; go on with byte {page.upto}"
    shown = given = "\n".join(_clean_lines(page.text))
    kinds: tuple[str, ...] = ()
    if stored.secrecy != "allow":
        near = artifacts.read(artifact.ref, max(0, offset - AROUND), PART_BYTES + 2 * AROUND)
        given, kinds = without_fragments(shown, plain(near.text))
    text = f"{given}\n[{where}, from line {page.line:,}{on}]"
    return ToolResult(text, Prose(shown), summary=where, meta=cut_secrets(kinds))


def _hits_wanted(args: Mapping[str, Any]) -> int:
    return min(int(args.get("limit", DEFAULT_HITS)), MAX_LINES)


async def _matching(artifacts: Artifacts, rg: Path | None, args: Mapping[str, Any]) -> tuple[list[LineMatch], bool]:
    """Return the lines that match a regular expression. A child process searches, so that a slow expression can be
    ended."""
    search = FileSearch(args["search"], await asyncio.to_thread(artifacts.path, args["ref"]))
    if "\0" in search.pattern:
        raise ToolFailure("invalid_parameters", "A NUL cannot be searched for.")
    command = search.for_ripgrep(rg) if rg else search.for_python()
    if rg:
        command.insert(1, "--text")
    found = await found_lines(command, search, lambda path: False)
    printed, cut = found.lines, found.cut
    hits = [LineMatch(int(found[1]), 0, found[2]) for line in printed if (found := _PRINTED.fullmatch(line.rest))]
    hits = [hit for hit in hits if hit.line >= int(args.get("offset", 1))]
    most = _hits_wanted(args)
    return hits[:most], cut or len(hits) > most


def _hits(stored: _ReadableResult, args: Mapping[str, Any], hits: Sequence[LineMatch], *, more: bool) -> ToolResult:
    ref, around = args["ref"], int(args.get("context", 0))
    if not hits:
        return ToolResult(f"Nothing in {ref} fits {args['search']!r}.", summary="no match")
    matching = {hit.line: hit for hit in hits}
    shown: list[str] = []
    kinds: dict[str, None] = {}
    last, room = 0, PART_BYTES
    for done, hit in enumerate(hits):
        first = max(hit.line - around, last + 1, 1)
        block = ["--"] if shown and around and first > last + 1 else []
        for number, line in _context(stored.artifacts, ref, (first, hit, around)):
            (line,), cut = stored.uncut([line], number)
            kinds |= dict.fromkeys(cut)
            if number == hit.line or number not in matching:
                block.append(f"{number}{':' if number == hit.line else '-'}{line}")
                last = number
            else:
                break
        room -= sum(len(line) + 1 for line in block)
        if room < 0 and shown:
            hits, more = hits[:done], True
            break
        shown += block
    told = f"{'the first ' if more else ''}{count(len(hits), 'hit')}"
    on = f"; go on with offset {hits[-1].line + 1}, or narrow the search" if more else ""
    text = "\n".join(shown)
    meta = cut_secrets(tuple(kinds))
    return ToolResult(f"{text}\n[{told}{on}]", Prose(text), summary=told, kind="hits", meta=meta)


def _context(artifacts: Artifacts, ref: str, place: tuple[int, LineMatch, int]) -> list[tuple[int, str]]:
    """Return the lines around a match, and the match, each shortened."""
    first, hit, around = place
    if not around:
        return [(hit.line, plain(hit.text))]
    page = artifacts.lines(ref, first, hit.line - first + around + 1, PART_BYTES)
    lines = dict(enumerate(_clean_lines(page.text), first))
    lines[hit.line] = plain(hit.text)
    return [(number, line[:500]) for number, line in sorted(lines.items())]


def _at_path(stored: _ReadableResult, args: Mapping[str, Any]) -> ToolResult:
    path: str = args["path"]
    keys = _keys(path)
    value = _document(stored.artifacts, stored.artifact, keys)
    for at, key in enumerate(keys):
        value = _step(value, key, "/" + "/".join(keys[:at]))
    if keys and stored.secrecy != "allow":
        # The name of a field distinguishes a password from a word.
        value = redact_value({keys[-1]: value})[keys[-1]]
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > PART_BYTES:
        text = FORMATS["json"](text, "standard", PART_BYTES, "; give a longer path for more of it")
    return ToolResult(text, Prose(text), summary=path[:60])


def _keys(path: str) -> list[str]:
    """Split ``/items/3/name`` or ``items[3].name`` into keys."""
    if "/" not in path:
        path = _INDEX.sub(r"/\1", path).replace(".", "/").removeprefix("$")
    return [part.replace("~1", "/").replace("~0", "~") for part in path.removeprefix("/").split("/") if part]


def _document(artifacts: Artifacts, artifact: Artifact, keys: list[str]) -> Any:
    """Return the JSON value in which ``keys`` are looked up; of JSON Lines the record of the first key, which is
    removed."""
    if artifact.size <= WHOLE:
        with suppress(ValueError):
            return parse_json(artifacts.path(artifact.ref).read_text("utf-8", "replace"))
    if not keys or not keys[0].isdecimal():
        message = f"{artifact.ref} ({byte_size(artifact.size)}) can't be read by path."
        raise ToolFailure("validation_error", message, "Use search, or lines by offset and limit.")
    line = artifacts.lines(artifact.ref, int(keys[0]) + 1, 1, WHOLE).text
    try:
        value = parse_json(line)
    except ValueError as error:
        message = f"{artifact.ref} is no JSON that can be read by path: line {int(keys[0]) + 1} is no whole value."
        raise ToolFailure("validation_error", message, "Use search, or lines by offset and limit.") from error
    del keys[0]
    return value


def _step(value: Any, key: str, where: str) -> Any:
    match value:
        case dict():
            pairs = cast("dict[str, Any]", value)
            if key in pairs:
                return pairs[key]
            close = similar(key, pairs) or list(pairs)[:10]
            raise ToolFailure("not_found", f"{where} has no key {key!r}.", f"It has {', '.join(close) or 'none'}.")
        case list():
            items = cast("list[Any]", value)
            if key.isdecimal() and int(key) < len(items):
                return items[int(key)]
            raise ToolFailure(
                "not_found", f"{where} has {count(len(items), 'item')}, counted from 0; there is no {key!r}."
            )
        case _:
            raise ToolFailure("not_found", f"{where} is {json.dumps(value)[:60]}; it has no keys.")
