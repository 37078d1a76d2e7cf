"""Databases and engines from the settings: their addresses, their confined helpers, and the rules for statements on
them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from ba_tui.core.effects import READING
from ba_tui.core.errors import BaError
from ba_tui.core.ports.tables import QueryResult
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import EnginePlace, Listener
from ba_tui.features.data.analysis.errors import QueryFailed, QueryRefused, SourceFailed
from ba_tui.features.data.analysis.sources import Address, SourcePlace, Sources
from ba_tui.permissions.rules.conditions import StatementKind
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.sql import classify
from ba_tui.processes.values import Confinement, WorkerSettings
from ba_tui.resources import UserFolders
from ba_tui.settings import Settings
from ba_tui.settings.environment import variables
from ba_tui.settings.keys import read_key
from ba_tui.settings.sections.data import REFERENCE, SourceSettings

KEYRING = "keyring:"
SQLITE = "sqlite"
SQLITE_FILES = ("", "-wal", "-shm", "-journal")


@frozen
class SourceSetup:
    """What is needed to open the sources of a session. Relative paths of files start at ``root``."""

    settings: Settings
    where: UserFolders
    sandbox: Sandbox
    root: Path

    def places(self, engine: EnginePlace) -> tuple[SourcePlace, ...]:
        """Return each source of the settings; its results go to the inbox of ``engine``. Reads no secret yet."""
        return tuple(self._place(name, source, engine) for name, source in self.settings.sources.items())

    def _place(self, name: str, source: SourceSettings, engine: EnginePlace) -> SourcePlace:
        own = engine.folder / "inbox" / name
        known = variables(self.where) if source.environment else {}
        environment = {**engine.worker.environment, **{key: known[key] for key in source.environment if key in known}}
        file = _file(source.url, self.root)
        worker = WorkerSettings(own, environment, engine.worker.limits, partial(self._confined, source, file, own))
        scheme = source.url.partition(":")[0]
        address = partial(read_address, name, f"{SQLITE}://{file}" if file else source.url, self.where)
        return SourcePlace(name, scheme, address, worker, source.writable, source.share, source.ask_cost)

    def _confined(self, source: SourceSettings, file: Path | None, own: Path) -> Confinement | None:
        """Return the confinement of a helper, which reads only the given files."""
        beside = tuple(Path(f"{file}{ending}") for ending in SQLITE_FILES) if file and not source.writable else ()
        given = tuple(path.expanduser().resolve() for path in source.files)
        # SQLite creates files next to the one that it writes.
        writable = (own, file.parent) if file and source.writable else (own,)
        profile = replace(READING, readable=(*given, *beside), writable=writable, plain=True, network=file is None)
        return self.sandbox.confine(profile, originals=True)


def read_address(name: str, url: str, where: UserFolders) -> Address:
    """Return ``url`` with its references replaced by their quoted values. Blocks.

    Raises:
        SourceFailed: a reference has no value.
    """
    secrets: list[str] = []
    known = variables(where)

    def value(reference: str) -> str:
        inner = reference[2:-1]
        key = read_key(inner.removeprefix(KEYRING), None, where) if inner.startswith(KEYRING) else None
        found = key.value if key else known.get(inner, "")
        if not found:
            what = (
                f"The keyring has no entry {inner.removeprefix(KEYRING)}" if KEYRING in inner else f"{inner} is not set"
            )
            raise SourceFailed(f"{name} can't be reached: {what}.", _cure(inner))
        secrets.extend((found, quote(found, safe="")))
        return quote(found, safe="")

    made = REFERENCE.sub(lambda match: value(match[0]), url)
    return Address(made, tuple(dict.fromkeys(secrets)))


def _cure(inner: str) -> str:
    if inner.startswith(KEYRING):
        return f"Save it: keyring set ba {inner.removeprefix(KEYRING)}"
    return f"Set the environment variable {inner} before you start ba."


def _file(url: str, root: Path) -> Path | None:
    """Return the absolute path of an SQLite source; None for other sources."""
    scheme, _, rest = url.partition(":")
    if scheme != SQLITE:
        return None
    return (root / Path(unquote(rest.removeprefix("//"))).expanduser()).resolve()


DIALECTS: Mapping[str, str] = {"postgresql": "postgres", "sc": "spark"}
"""Names of SQL dialects that differ from the scheme of the address."""
LOCAL = "duckdb"
READS: frozenset[StatementKind] = frozenset({"read"})


@frozen
class SourceQueries:
    """Runs the statements of ``query_data`` with a ``source``: reads run, changes need a writable source and approval,
    expensive reads need approval."""

    sources: Sources

    def dialect(self, args: Mapping[str, Any]) -> str:
        """Return the SQL dialect of a call. Accepts any arguments and never raises."""
        place = self.sources.places.get(str(args.get("source") or ""))
        return DIALECTS.get(place.scheme, place.scheme) if place else LOCAL

    async def writes(self, args: Mapping[str, Any]) -> bool:
        """Return whether the statement changes data on a writable source.

        Raises:
            UnknownTable: no such source. QueryRefused: the source is read-only, and the statement does more than read.
        """
        place = self.sources.place(args["source"])
        why = await asyncio.to_thread(_beyond_reading, args["sql"], self.dialect(args))
        if why and not place.writable:
            hint = f"Only statements that read run there; the user can set sources.{place.name}.writable."
            raise QueryRefused(f"{place.name} is read-only: {why}.", hint)
        return bool(why)

    async def concern(self, args: Mapping[str, Any]) -> str:
        """Return why the user must approve a statement: it changes data or is expensive. Empty for others."""
        try:
            place = self.sources.place(args["source"])
            if await self.writes(args):
                return f"it changes data on {place.name} ({place.engine})"
            cost = await self.sources.cost(place.name, args["sql"]) if place.ask_cost else None
        except QueryFailed as error:
            # A wrong statement fails with a better message when it runs; one of unknown cost must not run unapproved.
            return f"its cost is not known: {error}" if error.kind == "timeout" else ""
        except BaError:
            return ""
        if cost is None or cost.cost <= place.ask_cost:
            return ""
        expected = f"{cost.engine} expects cost {cost.cost:,.0f} and {count(round(cost.rows), 'row')} on {place.name}"
        return f"{expected}, above sources.{place.name}.ask_cost ({place.ask_cost:,.0f})"

    async def run(self, args: Mapping[str, Any], on_progress: Listener) -> QueryResult:
        """Run an approved statement. Raises BaError."""
        write = await self.writes(args)
        return await self.sources.query(args["source"], args["sql"], write=write, on_progress=on_progress)


def _beyond_reading(sql: str, dialect: str) -> str:
    """Return why a statement does more than read; empty when it only reads. Blocks."""

    found = classify(sql, dialect)
    if found.kinds <= READS and not found.network:
        return ""
    if "unknown" in found.kinds:
        return f"this SQL can't be checked: {found.trouble or 'it is unknown'}"
    return "this statement changes data" if found.kinds & {"write", "ddl"} else "it reaches the network"
