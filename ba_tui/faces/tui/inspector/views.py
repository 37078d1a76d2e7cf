"""The ways in which the inspector can show one result, the best one first."""

from __future__ import annotations

import asyncio
from typing import Literal, TypeAlias

from ba_tui.core.errors import BaError
from ba_tui.core.values import frozen
from ba_tui.faces.tui.displays.renderers import renderer_of
from ba_tui.faces.tui.inspector.json_values import LOOK, Parsed, begins_like_json, parsed_json
from ba_tui.faces.tui.inspector.model import Inspected, Whole

MOST = 1_000_000
"""Bytes of a stored result that are read as JSON, or copied."""

ViewName: TypeAlias = Literal["tree", "result", "pages"]
"""A tree of JSON; what the conversation holds; all that is stored, page by page."""


@frozen
class ResultViews:
    """``value``: what a tree shows."""

    names: tuple[ViewName, ...] = ("result",)
    value: Parsed = None

    def after(self, name: ViewName) -> ViewName:
        """The view that follows ``name``, round the end."""
        return self.names[(self.names.index(name) + 1) % len(self.names)]

    def words(self, name: ViewName) -> str:
        """What the key that leads to it is called."""
        result = "text" if "tree" in self.names else "short form"
        return {"tree": "tree", "result": result, "pages": "whole text"}[name]


async def views_of(inspected: Inspected) -> ResultViews:
    """Read what is needed off the UI loop."""
    # A picture of its own (a difference, a table, todos) says more than the text that it was made of.
    complete = inspected.display is not None and renderer_of(inspected.display).complete
    names: list[ViewName] = ["result"]
    if inspected.whole:
        names = ["result", "pages"] if complete else ["pages", "result"]
    value = None if complete else await _json(inspected)
    return ResultViews(tuple(names if value is None else ["tree", *names]), value)


async def _json(inspected: Inspected) -> Parsed:
    if inspected.whole:
        return await asyncio.to_thread(_stored, inspected.whole)
    display = inspected.display
    text = renderer_of(display).text(display) if display else inspected.text
    return await asyncio.to_thread(parsed_json, text) if begins_like_json(text) else None


def _stored(whole: Whole) -> Parsed:
    """None too for what is larger than MOST, and for what can't be read any more: its pages say so."""
    try:
        if not begins_like_json(whole.reader.read(whole.ref, 0, LOOK).text):
            return None
        page = whole.reader.read(whole.ref, 0, MOST)
    except BaError:
        return None
    return parsed_json(page.text) if page.last else None
