"""Draws charts as lines of text, for any face and for documents. Pure; may import core alone.

The public face: ``drawing.drawn``, and ``scales`` for numbers and times in words.
"""
