"""Control markup: the tags by which a model tells ba's own notes from what files, tools and programs say.

``reminder`` and its like put tags around what ba says; ``neutralized`` keeps anybody else's text from forging them.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import hidden_removed, looks_like

REMINDER, INSTRUCTIONS, SKILL = "system-reminder", "project-instructions", "skill"
OURS = frozenset({REMINDER, INSTRUCTIONS, SKILL})
CONTROL = OURS | {
    *("system", "system-prompt", "system-message", "developer", "human", "assistant", "tool-use", "tool-result"),
    *("tool-call", "tool-response", "tool-output", "function-call", "function-calls", "function-results"),
    *("function-response", "antml", "invoke", "thinking", "sys", "inst", "start-of-turn", "end-of-turn"),
}
"""Ours, and those by which models tell who speaks; several servers take such words in a text for the real thing."""
_OPENERS = "<\N{FULLWIDTH LESS-THAN SIGN}\N{SMALL LESS-THAN SIGN}"
_TAG = regex(rf"[{_OPENERS}](?=([^{_OPENERS}]{{1,80}}))")
_TOKEN = regex(r"<(?=[|\N{FULLWIDTH VERTICAL LINE}][^<>\n]{1,40}[|\N{FULLWIDTH VERTICAL LINE}]>)")
_TURN = regex(r"\[(?=/?INST\])", re.IGNORECASE)
_NAME = regex(r"[\s/\\<]*([a-z]+(?:[-_ ]+[a-z]+)*)", re.IGNORECASE)
_SPACES = regex(r"[-_\s]+")


def neutralized(text: str, names: Collection[str] = CONTROL) -> str:
    """``text`` with the first character of every tag called one of ``names`` replaced by ``‹``, however it is spelled:
    in capitals, with spaces, hidden characters or letters that only look alike."""
    if any(opener in text for opener in _OPENERS):
        text = _TAG.sub(lambda found: "‹" if _named(found[1], names) else found[0], text)
        if names is CONTROL:
            text = _TOKEN.sub("‹", text)
    return _TURN.sub("‹", text) if names is CONTROL and "INST]" in text.upper() else text


def _named(inside: str, names: Collection[str]) -> bool:
    """Whether what follows an opening bracket begins with one of ``names``."""
    found = _NAME.match(inside if inside.isascii() else looks_like(hidden_removed(inside)))
    if found is None:
        return False
    words = _SPACES.split(found[1].casefold())
    return any("-".join(words[:count]) in names for count in range(1, min(len(words), 3) + 1))
