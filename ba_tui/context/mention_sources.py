"""Where names to mention come from, beside files: skills, tools, other sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from ba_tui.context.mentions import MentionSource
from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.ports.mentions import MentionKind, Suggestion
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.ports.skills import Skills
from ba_tui.core.results import ToolResult
from ba_tui.core.services import Library
from ba_tui.core.tool import Tool


class OtherSessions:
    """The sessions of a library, without the one with the id ``own``. ``shorten`` keeps head and tail of a text."""

    def __init__(self, library: Library | None, own: str, shorten: Callable[[str], str]) -> None:
        self._library = library
        self._own = own
        self._shorten = shorten

    def read(self, key: str) -> tuple[str, ToolResult]:
        """The id of a session and what was said in it. Blocks. Raises BaError."""
        if self._library is None:
            raise UsageError("There are no sessions here.")
        info = self._library.find(key)
        text = self._shorten("".join(self._library.export(info.id, "md", for_model=True)))
        about = f"{info.title or 'untitled'}, {info.turns} turn{'' if info.turns == 1 else 's'}"
        return info.id, ToolResult(f"In Markdown:\n{text}", summary=about)

    def suggestions(self) -> Sequence[Suggestion]:
        infos: Sequence[SessionInfo] = ()
        with suppress(StorageError):
            # Where there are none to be read, none are offered.
            infos = self._library.sessions() if self._library else ()
        found = [info for info in infos if info.id != self._own]
        return [Suggestion("session", f"session:{info.id}", info.title or info.id, info.preview) for info in found]


def mention_sources(
    skills: Skills,
    tools: Callable[[], Iterable[Tool]],
    sessions: OtherSessions,
    data: Mapping[MentionKind, MentionSource],
) -> Mapping[MentionKind, MentionSource]:
    """What may be named after an ``@``, by its kind. ``data``: tables and columns."""

    def skill_suggestions() -> Sequence[Suggestion]:
        usable = [line for line in skills.lines() if line.state not in {"broken", "shadowed"} and not line.for_models]
        return [Suggestion("skill", "", line.id, line.description) for line in usable]

    def tool_suggestions() -> Sequence[Suggestion]:
        return [Suggestion("tool", "", tool.name, tool.description) for tool in tools()]

    return {"skill": skill_suggestions, "tool": tool_suggestions, "session": sessions.suggestions, **data}
