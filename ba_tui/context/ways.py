"""The ways to compress a conversation, as one thing to bring in: the first compression needs them, and no start does.

When which of them is taken is the compressor's business.
"""

from ba_tui.context.digest import within
from ba_tui.context.drafts import Draft, drafted, placed, split, with_summary
from ba_tui.context.extract import extract
from ba_tui.context.fit import fit
from ba_tui.context.truncate import truncate
from ba_tui.context.validity import faults
from ba_tui.core.undoing import undone

__all__ = [
    "Draft",
    "drafted",
    "extract",
    "faults",
    "fit",
    "placed",
    "split",
    "truncate",
    "undone",
    "with_summary",
    "within",
]
