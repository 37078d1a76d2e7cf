"""Draw charts as lines of text, for faces and documents. Pure; may import core only.

The public functions are ``drawing.drawn``, and ``scales`` for numbers and times in words.
"""
