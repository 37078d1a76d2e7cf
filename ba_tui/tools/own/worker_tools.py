"""Tools from people's own files: each call goes to the worker process that has loaded the file.

Finding the files is discovery's business, running them the worker's.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ba_tui.core.messages import clean_text
from ba_tui.core.results import Display, Table, ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.processes.terminal_text import plain
from ba_tui.processes.worker_values import WorkerCrashed, WorkerFailed
from ba_tui.tools.failed import Failed

if TYPE_CHECKING:
    from ba_tui.tools.own.workers import WorkerPool

log = logging.getLogger(__name__)
MAX_ROWS = 200
REFUSED = {
    "write": "it can write nothing but temporary files. To let it write, declare effect: write in its file; "
    "it then asks.",
    "network": "it has no network. To let it use the network, declare effect: network in its file; it then asks.",
    "hidden": "files with secrets and most of the home folder are hidden from it. "
    "To let it read them, declare effect: execute in its file; it then asks.",
}
"""What a tool that may only read was refused, and what to declare instead."""
READ_ONLY = regex(r"read-?only (?:file system|database)|unable to open database file", re.I)
KINDS = {"execution_error", "dependency_error", "invalid_parameters"}


def worker_tool(record: Mapping[str, Any], pool: WorkerPool) -> Tool:
    """The tool that ``record`` describes, run by ``pool``."""
    name: str = record["name"]
    needs: Sequence[str] = record["needs"]

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        if needs and (lacking := await asyncio.to_thread(missing, needs)):
            raise Failed("dependency_error", f"{name} needs {lacking}, which is not installed.")
        if pool.closed:
            message = f"The file of {name} is gone, was changed or is not trusted any more."
            raise Failed("not_found", message, "Use another tool; a changed one is available from the next prompt on.")
        # A call that was approved where nothing could hold it runs as those of other tools do.
        reads = call.profile.name == "reading"
        try:
            reply, printed = await pool.call(record["object"], args, call.report, keep=record["stateful"], reads=reads)
        except (WorkerCrashed, WorkerFailed) as error:
            hint = "Do not repeat the call unchanged; the tool itself may need a correction."
            raise Failed("execution_error", f"{name} gave no result: {error}.", hint) from error
        except OSError as error:
            raise Failed("resource_error", f"{name} could not be started: {error.strerror or error}.") from error
        return _result(name, reply, printed, reads=reads)

    facts = ToolFacts(
        category=record["category"],
        target=record["target"],
        paths=tuple(record["paths"]),
        repeatable=record["repeatable"],
        cacheable=record["cacheable"],
        tags=tuple(record["tags"]),
        version=record["version"],
        level=record["level"],
        subagents=record["subagents"],
        needs=tuple(needs),
        examples=tuple(record["examples"]),
        reads=record["effect"] == Effect.READ,
    )
    return Tool(
        name,
        record["description"],
        record["schema"],
        run,
        Effect(record["effect"]),
        timeout=record["timeout"],
        facts=facts,
        idempotent=record["idempotent"],
    )


def missing(needs: Sequence[str]) -> str:
    """The first of ``needs`` that is neither a module that can be imported nor a program; empty when all are there."""
    return next((need for need in needs if not shutil.which(need) and not _importable(need)), "")


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name.partition(".")[0]) is not None
    except (ValueError, ImportError):
        return False


def _result(name: str, reply: Mapping[str, Any], printed: str, *, reads: bool) -> ToolResult:
    match reply:
        case {"failed": {"text": str(text), **more}}:
            log.warning("%s failed\n%s", name, clean_text(str(more.get("trace", ""))))
            kind, line = more.get("kind"), more.get("line")
            where = f" (line {line} of its file)" if line else ""
            refused = "write" if READ_ONLY.search(f"{text}\n{printed}") else str(more.get("refused"))
            hint = REFUSED.get(refused) if reads else None
            hint = f"{name} declares effect: read, so {hint}" if hint else ""
            raise Failed(kind if kind in KINDS else "execution_error", f"{name} failed: {text}{where}", hint)
        case {"text": str(text)} if text:
            result = ToolResult(text)
        case {"text": _}:
            result = ToolResult(plain(printed).strip() or "(nothing was returned)")
        case {"json": str(text)}:
            result = ToolResult(text, _table(text), kind="json")
        case {"result": str(text)}:
            result = _own(name, text)
        case _:
            raise Failed("internal_error", f"{name}: the worker's reply can't be understood.")
    left = reply.get("left") or 0
    if left:
        note = f"[{left} process{'' if left == 1 else 'es'} left in the background: ended]"
        result = replace(result, text=f"{result.text}\n{note}")
    return result


def _own(name: str, text: str) -> ToolResult:
    """A ToolResult that the tool made itself. It speaks for no file of the session and changes no state of it."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - heavy, and rarely used

    try:
        result = TypeAdapter(ToolResult).validate_json(text)
    except ValidationError as error:
        raise Failed("internal_error", f"{name} returned an invalid ToolResult: {error.errors()[0]['msg']}") from error
    return replace(result, changes=None, artifact=None)


def _table(text: str) -> Display | None:
    """A list of flat records is shown as a table."""
    if not text.startswith("[{"):
        return None
    try:
        rows: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    records = cast("list[Any]", rows)[:MAX_ROWS]
    if not all(isinstance(row, dict) for row in records):
        return None
    columns = list(dict.fromkeys(str(key) for row in records for key in row))
    values = [tuple(row.get(column) for column in columns) for row in records]
    flat = all(not isinstance(value, dict | list) for row in values for value in row)
    return Table(tuple(columns), tuple(values)) if flat else None
