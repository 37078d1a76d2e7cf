"""A session without data, for tests."""

from __future__ import annotations

from ba_tui.core.errors import UsageError
from ba_tui.core.results import ToolResult


class NoData:
    """context.ports.MentionedData that knows nothing."""

    def remote(self, text: str) -> bool:
        """See MentionedData."""
        del text
        return False

    async def names(self, text: str) -> bool:
        """See MentionedData."""
        del text
        return False

    async def names_files(self, text: str) -> bool:
        """See MentionedData."""
        del text
        return False

    async def read(self, text: str) -> ToolResult:
        """See MentionedData."""
        raise UsageError(text)

    async def register(self, text: str) -> ToolResult:
        """See MentionedData."""
        raise UsageError(text)
