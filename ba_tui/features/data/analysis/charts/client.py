"""Charts of an engine, as its client asks for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ba_tui.core.displays.charts import Chart, ChartRequest, PictureFormat
from ba_tui.core.ports.tables import Arrangement, Progress
from ba_tui.features.data.analysis.wire import decoded


class Charts:
    """``request`` asks the helper by method, payload and listener for progress."""

    def __init__(self, request: Callable[[str, object, Callable[[Progress], None] | None], Awaitable[Any]]) -> None:
        self._request = request

    async def compute(
        self,
        wanted: ChartRequest,
        arrangement: Arrangement | None = None,
        *,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Chart:
        """Compute a chart of a result or dataset, of the rows that ``arrangement`` lets through.

        Raises:
            UnknownTable: nothing has the name. QueryFailed: the chart can't be drawn of these columns.
        """
        payload = {"chart": asdict(wanted), "arrangement": asdict(arrangement or Arrangement())}
        return decoded(Chart, await self._request("chart", payload, on_progress))

    @asynccontextmanager
    async def picture(self, chart: Chart, format: PictureFormat) -> AsyncGenerator[Path]:
        """Draw a chart into a temporary file of the session and give its path; it is removed afterwards."""
        from ba_tui.features.data.analysis.charts.vega import specification  # noqa: PLC0415 - only for pictures

        payload = {"specification": specification(chart), "format": format}
        path = Path(str(await self._request("picture", payload, None)))
        try:
            yield path
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)
