"""Renderers of display types. May import core, textual, and rows of transcript and inspector."""
