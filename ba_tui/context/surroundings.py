"""What attachments are made from: the means of one conversation to find, read, judge and clean what is mentioned."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from ba_tui.context.mentions import MentionLines
from ba_tui.context.session_data import MentionedData
from ba_tui.core.messages import Message
from ba_tui.core.ports.skills import Skills
from ba_tui.core.results import ToolResult
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.ingress import Owner

ROOM = 50_000
SHARE = 4
"""Attachments of a prompt may take this part of the window, and never more than ROOM tokens."""

Speaker: TypeAlias = Owner | Literal["person"]
"""Whose words name something: the person's own, or those of a file and its owner."""
Read = Callable[[str, MentionLines | None], Awaitable[ToolResult]]
Clean = Callable[[str, ToolResult, Branch], Awaitable[ToolResult]]


@frozen
class AttachedFiles:
    """``resolve`` follows links and raises BaError; ``refused`` says why a path may not be read for whoever names it,
    empty when it may; ``secret`` whether a file holds secrets under another name, which may take a while; ``inside``:
    whether it can be read as ``shown`` has it. ``kept``: where files from elsewhere are copied to."""

    resolve: Callable[[str], Path]
    shown: Callable[[Path], str]
    inside: Callable[[Path], bool]
    refused: Callable[[str, Speaker], str]
    secret: Callable[[Path], bool]
    read: Read
    listing: Callable[[str], Awaitable[ToolResult]]
    kept: Path | None


@frozen
class Surroundings:
    """Of one conversation. ``clean`` takes secrets out; ``tokens`` counts, ``window`` is how many the model can
    read; ``session`` gives the id of another one and what was said in it, and raises BaError; ``nearest`` is the path
    that is most like another."""

    files: AttachedFiles
    clean: Clean
    tokens: Callable[[Sequence[Message]], int]
    window: Callable[[], int]
    skills: Skills | None
    tools: Callable[[], Collection[str]]
    show: Callable[[Sequence[str]], None]
    session: Callable[[str], tuple[str, ToolResult]]
    nearest: Callable[[str], Awaitable[str]]
    data: MentionedData

    @property
    def room(self) -> int:
        """Tokens that may come with a prompt."""
        return min(ROOM, self.window() // SHARE)
