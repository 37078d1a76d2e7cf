"""Secret values in the columns of datasets, learned when data is read.

A query may show a piece of one, or change its looks, and then it can only be found by value.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.errors import AnalysisError
from ba_tui.features.data.analysis.text_columns import ColumnTexts, TextColumns
from ba_tui.permissions.secrets.disguises import KnownSearch
from ba_tui.permissions.secrets.scanner import find

log = logging.getLogger(__name__)


@frozen
class SecretColumns:
    """``columns`` of the engine; ``search`` is given the secrets that they hold."""

    columns: TextColumns
    search: KnownSearch

    async def learn(self) -> None:
        """Learn the secrets of datasets that are new: of whole columns where some of their values look like secrets."""
        try:
            for sample in await self.columns.new_samples():
                if await asyncio.to_thread(_secrets, sample):
                    whole = await self.columns.all(sample.dataset, sample.column)
                    await asyncio.to_thread(self._add, replace(whole, texts=(*sample.texts, *whole.texts)))
        except AnalysisError as error:
            # The call itself says what is wrong with the data; what its result shows is searched all the same.
            log.warning("The columns of the data could not be searched for secrets: %s", error)

    def _add(self, found: ColumnTexts) -> None:
        for kind, values in _secrets(found).items():
            self.search.known.add(values, kind)
        self.search.prepare()

    def learning(self, tool: Tool) -> Tool:
        """``tool``, after whose calls the data that they read is known before their results are searched."""

        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            result = await tool.run(args, call)
            await self.learn()
            return result

        return replace(tool, run=run)


def _secrets(found: ColumnTexts) -> Mapping[str, list[str]]:
    """The secrets of a column by kind. Its name counts as what stands before each value."""
    secrets: dict[str, list[str]] = {}
    for text in dict.fromkeys(found.texts):
        line = f'{found.column}="{text}"'
        for secret in find(line):
            secrets.setdefault(secret.kind, []).append(line[secret.start : secret.end])
    return secrets
