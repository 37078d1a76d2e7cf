"""Answers the requests of ``analysis.sources.Sources`` for one source. Connects with the first of them."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ba_tui.features.data.analysis.source_process.failures import cleaned, first_line, unreachable
from ba_tui.processes.serving import Handler, HandlerFailed, RequestCancelled, WorkerChannel, WorkerRequest

if TYPE_CHECKING:
    from ba_tui.features.data.analysis.source_process.engine import IbisEngine

POSTGRES = frozenset({"postgres", "postgresql"})
SPARK = "sc"


class Handlers:
    """One method a request."""

    def __init__(self) -> None:
        self._engine: IbisEngine | None = None

    def check(self, request: WorkerRequest) -> object:
        return self._connected(request).version

    def tables(self, request: WorkerRequest) -> object:
        engine = self._connected(request)
        return {"engine": engine.version, "tables": list(engine.tables())}

    def describe(self, request: WorkerRequest) -> object:
        engine, given = self._connected(request), _given(request)
        with engine.limited(request, given["seconds"]):
            columns = engine.columns(given["table"])
            figures = engine.statistics(given["table"], given["share"]) if given["share"] != "schema" else []
        return {"engine": engine.version, "columns": columns, "figures": figures}

    def cost(self, request: WorkerRequest) -> object:
        engine, given = self._connected(request), _given(request)
        found = engine.cost(given["sql"])
        return {"engine": engine.label, "cost": found[0], "rows": found[1]} if found else None

    def query(self, request: WorkerRequest) -> object:
        from ba_tui.features.data.analysis.source_process.engine import SourceQuery  # noqa: PLC0415 - see _engine

        engine, given = self._connected(request), _given(request)
        request.progress({"doing": f"running the query on {engine.label or 'the source'}", "share": None})
        query = SourceQuery(given["sql"], Path(given["file"]), given["most"], given["seconds"])
        started = time.monotonic()
        with engine.limited(request, query.seconds):
            landed = engine.execute(query) if given["write"] else engine.read(query)
        return {**asdict(landed), "engine": engine.version, "seconds": round(time.monotonic() - started, 6)}

    def words(self, error: Exception, request: WorkerRequest) -> HandlerFailed:
        """What went wrong, as one line."""
        if isinstance(error, ImportError):
            return unreachable(
                f"The driver for this source is missing ({error.name or first_line(error)}).",
                f"python -m pip install 'ba-tui[{_extra(_url(request))}]'",
            )
        if self._engine is None:
            return unreachable(f"It can't be reached: {first_line(error)}", "Check sources in your settings.")
        failure = self._engine.in_words(error, str(_given(request).get("sql", "")))
        if failure.kind == "source_failed":
            # The next request connects anew.
            self._engine = None
        return failure

    def _connected(self, request: WorkerRequest) -> IbisEngine:
        if self._engine is None:
            request.progress({"doing": "connecting", "share": None})
            self._engine = _engine(_url(request))
        return self._engine


def _engine(url: str) -> IbisEngine:
    """Connect to ``url``. What that takes is imported now, so that a missing driver is a reply."""
    scheme = url.partition(":")[0]
    if scheme in POSTGRES:
        from ba_tui.features.data.analysis.source_process.postgres import connected  # noqa: PLC0415

        return connected(url)
    if scheme == "sqlite":
        from ba_tui.features.data.analysis.source_process.sqlite import connected as opened  # noqa: PLC0415

        return opened(url)
    if scheme == SPARK:
        from ba_tui.features.data.analysis.source_process.spark import connected as remote  # noqa: PLC0415

        return remote(url)
    import ibis  # noqa: PLC0415

    from ba_tui.features.data.analysis.source_process.engine import IbisEngine  # noqa: PLC0415

    return IbisEngine(ibis.connect(url))


def _extra(url: str) -> str:
    scheme = url.partition(":")[0]
    return "postgres" if scheme in POSTGRES else "spark" if scheme == SPARK else scheme


def _given(request: WorkerRequest) -> dict[str, Any]:
    return cast("dict[str, Any]", request.payload)


def _url(request: WorkerRequest) -> str:
    return str(_given(request)["url"])


def _in_words(handlers: Handlers, handler: Handler) -> Handler:
    """``handler``, whose failures are one line each, without the secrets of the source."""

    def run(request: WorkerRequest) -> object:
        try:
            return handler(request)
        except RequestCancelled:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a driver raises becomes one line
            if request.cancelled.is_set():
                raise RequestCancelled from None
            found = error if isinstance(error, HandlerFailed) else handlers.words(error, request)
            # Nothing of the first error goes along: its words may hold the address.
            raise cleaned(found, _given(request)["secrets"]) from None

    return run


def main(channel: WorkerChannel) -> None:
    """Serve until the client is gone."""
    handlers = Handlers()
    names = ("check", "tables", "describe", "cost", "query")
    channel.serve({name: _in_words(handlers, getattr(handlers, name)) for name in names})
