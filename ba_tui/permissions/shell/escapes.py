"""The escapes of ``$'…'`` and the characters they make.

Where such words end stands in ``words``.
"""

from __future__ import annotations

import re

from ba_tui.core.text.patterns import regex
from ba_tui.permissions.shell.tokens import UnreadableCommand

ANSI = regex(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))|([^\\])", re.DOTALL
)
_ANSI_LETTERS = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def ansi_character(match: re.Match[str]) -> str:
    """The character of one match of ``ANSI``."""
    two, four, eight, octal, control, letter, plain = match.groups()
    if plain is not None:
        return plain
    number = two or four or eight
    if number or octal:
        code = int(number, 16) if number else int(octal, 8) & 0xFF
        if not 0 < code <= 0x7F:
            # What others come to depends on the locale.
            raise UnreadableCommand("an escape in $'' does not make a plain character")
        return chr(code)
    if control is not None:
        raise UnreadableCommand("a control character is written in $''")
    return _ANSI_LETTERS.get(letter, letter if letter in "\\'\"?" else "\\" + letter)
