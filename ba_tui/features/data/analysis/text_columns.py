"""Texts in the datasets of an engine, as its client asks for them: a few of each column, then all of some columns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ba_tui.core.ports.tables import Progress
from ba_tui.core.values import frozen


@frozen
class ColumnTexts:
    """``texts`` of one ``column`` of a dataset, each once."""

    dataset: str
    column: str
    texts: tuple[str, ...]


class TextColumns:
    """``request`` asks the helper by method, payload and listener for progress."""

    def __init__(self, request: Callable[[str, object, Callable[[Progress], None] | None], Awaitable[Any]]) -> None:
        self._request = request

    async def new_samples(self) -> tuple[ColumnTexts, ...]:
        """Texts from both ends of each dataset that was read, or read anew, since this was asked last."""
        found = await self._request("samples", {}, None)
        return tuple(ColumnTexts(dataset, column, tuple(texts)) for dataset, column, texts in found)

    async def all(self, dataset: str, column: str) -> ColumnTexts:
        """The texts of a whole column, as far as a reply holds them."""
        payload = {"name": dataset, "column": column}
        return ColumnTexts(dataset, column, tuple(await self._request("texts", payload, None)))
