"""Control markup: the tags by which a model tells ba's own notes from what files, tools and programs say.

``reminder`` and its like put tags around what ba says; ``neutralized`` keeps anybody else's text from forging them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Set

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
BESIDE_SKILLS = CONTROL - {SKILL}
"""All but the tag of a skill, which the result that starts one holds."""
_OPENERS = "<\N{FULLWIDTH LESS-THAN SIGN}\N{SMALL LESS-THAN SIGN}"
MARK = "‹"
"""What stands in the place of the first character of such a tag."""
_FLAT = frozenset(name.replace("-", "") for name in CONTROL if "-" in name)
_VISIBLE = regex(rf"{MARK}(?=([^{MARK}]{{1,80}}))")
_IN_BRACKETS = regex(r"/?INST\]", re.IGNORECASE)
_IN_BARS = regex(r"[|\N{FULLWIDTH VERTICAL LINE}][^<>\n]{1,40}[|\N{FULLWIDTH VERTICAL LINE}]>")
_TAG = regex(rf"[{_OPENERS}](?=([^{_OPENERS}]{{1,80}}))")
_TOKEN = regex(r"<(?=[|\N{FULLWIDTH VERTICAL LINE}][^<>\n]{1,40}[|\N{FULLWIDTH VERTICAL LINE}]>)")
_TURN = regex(r"\[(?=/?INST\])", re.IGNORECASE)
_NAME = regex(r"[\s/\\<]*([a-z]+(?:[-_ ]+[a-z]+)*)", re.IGNORECASE)
_SPACES = regex(r"[-_\s]+")


def neutralized(text: str, names: Set[str] = CONTROL) -> str:
    """``text`` with the first character of every tag called one of ``names`` replaced by ``‹``, however it is spelled:
    in capitals, with spaces, hidden characters or letters that only look alike."""
    if any(opener in text for opener in _OPENERS):
        text = _TAG.sub(lambda found: "‹" if _named(found[1], names) else found[0], text)
        if names >= BESIDE_SKILLS:
            text = _TOKEN.sub("‹", text)
    return _TURN.sub("‹", text) if names >= BESIDE_SKILLS and "INST]" in text.upper() else text


def restored(text: str) -> str:
    """``text``, which quotes what ``neutralized`` gave, with the first characters of tags as they were."""
    if MARK not in text:
        return text

    def first(found: re.Match[str]) -> str:
        inside = found[1]
        if _IN_BRACKETS.match(inside):
            return "["
        return "<" if _IN_BARS.match(inside) or _named(inside, CONTROL) else MARK

    return _VISIBLE.sub(first, text)


def _named(inside: str, names: Set[str]) -> bool:
    """Whether what follows an opening bracket begins with one of ``names``."""
    found = _NAME.match(inside if inside.isascii() else _plain(inside))
    if found is None:
        return False
    words = _SPACES.split(found[1].casefold())[:3]
    if any("-".join(words[:count]) in names for count in range(1, len(words) + 1)):
        return True
    return names >= BESIDE_SKILLS and any("".join(words[:count]) in _FLAT for count in range(1, len(words) + 1))


def _plain(inside: str) -> str:
    """The ASCII letters that ``inside`` looks like, without marks above and below them; any dash is a hyphen."""
    kinds = ((letter, unicodedata.category(letter)) for letter in looks_like(hidden_removed(inside)))
    apart = "".join("-" if kind == "Pd" else letter for letter, kind in kinds)
    return "".join(letter for letter in unicodedata.normalize("NFD", apart) if not unicodedata.combining(letter))
