"""The last resort: whatever the conversation is, the request fits afterwards."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.context.rounds import Count, changed
from ba_tui.core.messages import Message, Text, user

CUT = "\n[… shortened to fit; recall gives the whole …]\n"


def fit(messages: Sequence[Message], limit: int, count: Count) -> tuple[Message, ...]:
    """``messages``, or as much of them as ``limit`` tokens hold: at the very least the end of the last words."""
    if count(messages) <= limit:
        return tuple(messages)
    last = next((message for message in reversed(messages) if message.role == "user" and message.text.strip()), None)
    words = last.text if last else "Go on."
    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        if count([user(_ends(words, middle))]) <= limit:
            low = middle
        else:
            high = middle - 1
    blocks = (Text(_ends(words, low)),)
    return (changed(last, blocks) if last else user(_ends(words, low)),)


def _ends(words: str, room: int) -> str:
    if len(words) <= room:
        return words
    return f"{words[: room // 2]}{CUT}{words[len(words) - (room - room // 2) :]}"
