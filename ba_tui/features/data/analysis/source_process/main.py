"""Serves the requests of ``tools.sources.Sources`` for one source. Connects with the first request."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ba_tui.features.data.analysis.errors import cleaned, first_line, unreachable
from ba_tui.processes.serving import Handler, HandlerFailed, RequestCancelled, WorkerChannel, WorkerRequest

if TYPE_CHECKING:
    from ba_tui.features.data.analysis.source_process.engine import IbisEngine

POSTGRES = frozenset({"postgres", "postgresql"})


class SourceHandlers:
    """One method for each kind of request."""

    def __init__(self) -> None:
        self._engine: IbisEngine | None = None

    def check(self, request: WorkerRequest) -> object:
        return self._connected(request).version

    def tables(self, request: WorkerRequest) -> object:
        engine = self._connected(request)
        return {"engine": engine.version, "tables": list(engine.tables())}

    def describe(self, request: WorkerRequest) -> object:
        engine, payload = self._connected(request), _payload(request)
        with engine.limited(request, payload["seconds"]):
            columns = engine.columns(payload["table"])
            figures = engine.statistics(payload["table"], payload["share"]) if payload["share"] != "schema" else []
        return {"engine": engine.version, "columns": columns, "figures": figures}

    def cost(self, request: WorkerRequest) -> object:
        engine, payload = self._connected(request), _payload(request)
        found = engine.cost(payload["sql"])
        return {"engine": engine.label, "cost": found[0], "rows": found[1]} if found else None

    def query(self, request: WorkerRequest) -> object:
        from ba_tui.features.data.analysis.source_process.engine import SourceQuery  # noqa: PLC0415 - loads pyarrow, see _engine

        engine, payload = self._connected(request), _payload(request)
        request.progress({"doing": f"running the query on {engine.label or 'the source'}", "share": None})
        query = SourceQuery(payload["sql"], Path(payload["file"]), payload["most"], payload["seconds"])
        started = time.monotonic()
        with engine.limited(request, query.seconds):
            landed = engine.execute(query) if payload["write"] else engine.read(query)
        return {**asdict(landed), "engine": engine.version, "seconds": round(time.monotonic() - started, 6)}

    def words(self, error: Exception, request: WorkerRequest) -> HandlerFailed:
        """Return the error as one line."""
        if isinstance(error, ImportError):
            return unreachable(
                f"The driver for this source is missing ({error.name or first_line(error)}).",
                f"python -m pip install 'ba-tui[{_extra(_url(request))}]'",
            )
        if self._engine is None:
            return unreachable(f"It can't be reached: {first_line(error)}", "Check sources in your settings.")
        failure = self._engine.in_words(error, str(_payload(request).get("sql", "")))
        if failure.kind == "source_failed":
            # The next request reconnects.
            self._engine = None
        return failure

    def _connected(self, request: WorkerRequest) -> IbisEngine:
        if self._engine is None:
            request.progress({"doing": "connecting", "share": None})
            self._engine = _engine(_url(request))
        return self._engine


def _engine(url: str) -> IbisEngine:
    """Connect to ``url``. Drivers are imported here, so that a missing driver becomes a reply."""
    scheme = url.partition(":")[0]
    if scheme in POSTGRES:
        from ba_tui.features.data.analysis.source_process.postgres import connected  # noqa: PLC0415

        return connected(url)
    from ba_tui.features.data.analysis.source_process.engine import connected as opened  # noqa: PLC0415

    return opened(url)


def _extra(url: str) -> str:
    scheme = url.partition(":")[0]
    return "postgres" if scheme in POSTGRES else "spark" if scheme == "sc" else scheme


def _payload(request: WorkerRequest) -> dict[str, Any]:
    return cast("dict[str, Any]", request.payload)


def _url(request: WorkerRequest) -> str:
    return str(_payload(request)["url"])


def _in_words(handlers: SourceHandlers, handler: Handler) -> Handler:
    """Return ``handler`` with errors of one line each, without the secrets of the source."""

    def run(request: WorkerRequest) -> object:
        try:
            return handler(request)
        except RequestCancelled:
            raise
        except Exception as error:  # noqa: BLE001 - drivers raise exceptions of any class
            if request.cancelled.is_set():
                raise RequestCancelled from None
            found = error if isinstance(error, HandlerFailed) else handlers.words(error, request)
            # Drop the original exception: its message may contain the address.
            raise cleaned(found, _payload(request)["secrets"]) from None

    return run


def main(channel: WorkerChannel) -> None:
    """Serve requests until the client disconnects."""
    handlers = SourceHandlers()
    names = ("check", "tables", "describe", "cost", "query")
    channel.serve({name: _in_words(handlers, getattr(handlers, name)) for name in names})
