"""The ways to compress a conversation, as one thing to bring in: the first compression needs them, and no start does.

When which of them is taken is the compressor's business.
"""

from ba_tui.context.compression.digest import within
from ba_tui.context.compression.drafts import SummaryDraft, drafted, placed, split, with_summary
from ba_tui.context.compression.extract import extract
from ba_tui.context.compression.fit import fit
from ba_tui.context.compression.truncate import truncate
from ba_tui.context.compression.undoing import undone
from ba_tui.context.compression.validity import faults

__all__ = [
    "SummaryDraft",
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
