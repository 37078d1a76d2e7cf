"""The base of views that paint lines themselves: their ground and thin, quiet scrollbars."""

from __future__ import annotations

from textual.scroll_view import ScrollView


class LineView(ScrollView):
    """Scrolls lines that a subclass paints. They are cut at the right edge unless the subclass sets ``overflow-x``."""

    DEFAULT_CSS = """
    LineView {
        background: transparent;
        color: $foreground;
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 1;
        scrollbar-color: $foreground 25%;
        scrollbar-color-hover: $foreground 40%;
        scrollbar-color-active: $foreground 40%;
        scrollbar-background: $foreground 5%;
        scrollbar-background-hover: $foreground 5%;
        scrollbar-background-active: $foreground 5%;
        scrollbar-corner-color: $foreground 5%;
    }
    """
