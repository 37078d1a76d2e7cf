"""Changes of one file, and of several that were made as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from ba_tui.core.results import Diff, Diffs
from ba_tui.faces.tui.displays.renderer import PreviewSpace, Renderer
from ba_tui.faces.tui.inspector.diff import diff_rows, patch
from ba_tui.faces.tui.inspector.rows import line
from ba_tui.faces.tui.transcript.lines import PaintedLine
from ba_tui.faces.tui.transcript.markdown import plain

COMPARED = 4_000
"""Lines up to which a preview compares."""


def _preview(diff: Diff, space: PreviewSpace) -> list[PaintedLine]:
    import difflib  # noqa: PLC0415 - only when a change is expanded

    width, palette = space.width, space.palette
    before, after = (diff.before or "").splitlines(), diff.after.splitlines()
    if len(before) + len(after) > COMPARED:
        return plain("Too long to compare here: Enter opens the difference.", width, palette.dim)
    tones = {"+": palette.added, "-": palette.removed, "@": palette.comment}
    lines: list[PaintedLine] = []
    for text in islice(difflib.unified_diff(before, after, lineterm="", n=2), 2, None):
        lines += plain(text, width, tones.get(text[:1], palette.text))
    return lines or plain("No change.", width, palette.dim)


def _previews(diffs: Diffs, space: PreviewSpace) -> list[PaintedLine]:
    lines: list[PaintedLine] = []
    for item in diffs.items:
        lines += plain(item.path, space.width, space.palette.dim) + _preview(item, space)
    return lines


def _shows(diff: Diff, argument: object) -> bool:
    if not isinstance(argument, str):
        return False
    inside = argument == diff.path or argument in diff.after or argument in (diff.before or "")
    return bool(argument) and inside


def _edited(diff: Diff, texts: Mapping[str, str]) -> Sequence[str]:
    """The whole new text; else what is new in it."""
    before = diff.before or ""
    whole = [key for key, value in texts.items() if value == diff.after]
    return whole or [
        key
        for key, value in texts.items()
        if value and value != diff.path and value in diff.after and value not in before
    ]


DIFF: Renderer[Diff] = Renderer(
    preview=_preview,
    page=lambda diff, split: [lambda: diff_rows(diff, split=split)],
    question=lambda diff: [lambda: diff_rows(diff, context=1)],
    text=patch,
    values=lambda diff: [diff.path, diff.before, diff.after],
    shows=_shows,
    edited=_edited,
    changes=lambda diff: (diff,),
    complete=True,
)
DIFFS: Renderer[Diffs] = Renderer(
    preview=_previews,
    page=lambda diffs, split: [
        lambda: [row for item in diffs.items for row in (*diff_rows(item, split=split), line())]
    ],
    question=lambda diffs: [lambda: [row for item in diffs.items for row in diff_rows(item, context=1)]],
    text=lambda diffs: "".join(map(patch, diffs.items)),
    values=lambda diffs: [text for item in diffs.items for text in (item.path, item.before, item.after)],
    changes=lambda diffs: diffs.items,
    complete=True,
)
