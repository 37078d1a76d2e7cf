"""Telling words that somebody types from keys that answer a question."""

from __future__ import annotations

from textual.events import Key

RECENT = 0.5
"""Seconds in which a question ignores answers after it appeared, and in which two letters are one word."""


class TypeAhead:
    """Letters that were pressed too soon to answer: an impatient answer, or the beginning of a word."""

    def __init__(self) -> None:
        self._letters: list[Key] = []
        self._last = 0.0

    def word(self, key: Key, *, answers: bool, held: bool, now: float) -> list[Key] | None:
        """Return the letters before ``key`` when it makes a word with them; None when ``key`` is for the question.

        One letter, however often, makes no word when it ``answers``. ``held``: the question has just appeared.
        """
        before = self._letters if now - self._last < RECENT else []
        if key.character == " " and not before:
            return None
        if not answers or (before and before[-1].character != key.character):
            self._letters = []
            return before
        self._letters = [*before, key] if held else []
        self._last = now
        return None
