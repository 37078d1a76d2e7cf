"""Events about what is known: figures that were checked, memories, working memory."""

from __future__ import annotations

from typing import Any, Literal

from ba_tui.core.events.signed import Signed
from ba_tui.core.text.figures import FigureReport
from ba_tui.core.text.memories import MemoryLine
from ba_tui.core.values import frozen


@frozen
class FiguresChecked(Signed):
    """The figures of the answer whose message has the id ``message`` were checked. A later one of the same message
    takes its place."""

    message: str
    report: FigureReport
    type: Literal["figures_checked"] = "figures_checked"


@frozen
class MemoriesUsed(Signed):
    """These memories went with the newest words of the person, best first."""

    memories: tuple[MemoryLine, ...]
    type: Literal["memories_used"] = "memories_used"


@frozen
class MemoryChanged(Signed):
    """Memory was written to, beside what the person did by hand; ``Memory.undo`` takes back any of these ids.
    ``private``: from here on the session neither stores nor recalls."""

    stored: tuple[MemoryLine, ...] = ()
    forgotten: tuple[str, ...] = ()
    private: bool = False
    type: Literal["memory_changed"] = "memory_changed"


@frozen
class MemoryProposed(Signed):
    """Something that the person said may be worth storing. It waits in ``Memory.proposals``, by the ids of these."""

    proposals: tuple[MemoryLine, ...]
    type: Literal["memory_proposed"] = "memory_proposed"


@frozen
class WorkingChanged(Signed):
    """What the working memory of ``scope`` holds from now on: the name of a task, or empty for the whole session."""

    scope: str
    values: dict[str, Any]
    type: Literal["working_changed"] = "working_changed"
