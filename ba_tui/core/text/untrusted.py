"""Make text of models, tools and files safe: to paint on a terminal, and to put into requests without forged tags.
Pure.

Control markup are the tags by which a model tells ba's notes from other text: ``reminder`` in ``core.messages`` writes
them, and ``neutralized`` keeps other text from imitating them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Set

from ba_tui.core.text.patterns import regex

# Bodies of string sequences end at a terminator on the same line; without one only the introducer is removed,
# so that an unfinished sequence never removes the text after it. No body contains an introducer: the scan is linear.
_BODY = r"[^\x07\x1b\x90\x98\x9c-\x9f\n]*(?:\x07|\x1b\\|\x9c)"
_SEQUENCE = regex(
    rf"(?:\x1b\]|\x9d){_BODY}"
    rf"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f]){_BODY}"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b\[|\x1b[\]PX^_]"
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b[0-OQ-WYZ\\`-~]"
)
_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_BIDI = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_HIDDEN = (
    r"\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
    r"\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
)
_TAGS = r"\U000e0000-\U000e0fff"
_JOINERS = r"\u200c\u200d\ufe00-\ufe0f"
_MARKS = (
    r"\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u07eb-\u07f3\u0816-\u0819"
    r"\u08ca-\u08e1\u08e3-\u0902\u093a\u093c\u0941-\u0948\u094d\u0951-\u0957\u0981\u09bc\u09c1-\u09c4\u09cd\u0a3c"
    r"\u0a41-\u0a4d\u0abc\u0ac1-\u0ac8\u0acd\u0b3c\u0b41-\u0b44\u0b4d\u0bc0\u0bcd\u0c3e-\u0c40\u0c46-\u0c4d\u0ccc\u0ccd"
    r"\u0d41-\u0d44\u0d4d\u0dca\u0dd2-\u0dd6\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u0f35\u0f37"
    r"\u0f39\u0f71-\u0f7e\u0f80-\u0f84\u0f86\u0f87\u0f8d-\u0fbc\u102d-\u1030\u1032-\u1037\u1039\u103a\u135d-\u135f"
    r"\u17b7-\u17bd\u17c6\u17c9-\u17d3\u1a17\u1a18\u1a58-\u1a60\u1a65-\u1a7f\u1ab0-\u1aff\u1b00-\u1b03\u1b34-\u1b3a"
    r"\u1dc0-\u1dff\u20d0-\u20ff\u302a-\u302d\u3099\u309a\ua66f-\ua672\ua674-\ua67d\ua69e\ua69f\ua6f0\ua6f1"
    r"\ua8e0-\ua8f1\ufb1e\ufe20-\ufe2f\U0001d165-\U0001d169\U0001d16d-\U0001d172\U0001e8d0-\U0001e8d6\U0001e944-\U0001e94a"
)
"""Combining marks: a few belong to a word, dozens in a row cover the lines around it."""
_SUSPECT = regex(rf"[{_CONTROLS}{_BIDI}{_HIDDEN}{_TAGS}{_JOINERS}{_MARKS}]")
_FLAG = regex("\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f")
_CONTROL = regex(f"[{_CONTROLS}]")
_INVISIBLE = regex(f"[{_BIDI}{_HIDDEN}{_TAGS}]")
_JOINER_RUN = regex(f"([{_JOINERS}]{{2}})[{_JOINERS}]+")
_PILE = regex(f"([{_MARKS}]{{8}})[{_MARKS}]+")
_REVEALED = regex(rf"[{_BIDI}{_HIDDEN}{_TAGS}{_JOINERS}\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]")
_IN_ASCII = rf"[{_JOINERS}](?=[!-~])|(?<=[!-/:-~])[{_JOINERS}](?!\u20e3)"
_LOOSE_JOINER, _ASCII_JOINER = regex(rf"{_IN_ASCII}|[{_JOINERS}]{{2}}"), regex(_IN_ASCII)
_PICTURES = {code: chr(0x2400 + code) for code in range(32)} | {0x7F: "\u2421"}
_UNREAD = regex(rf"[{_CONTROLS}{_BIDI}{_HIDDEN}{_TAGS}{_JOINERS}\u2400-\u2421]")
_CYRILLIC = ("авеікмнорстухһјѕԁԛԝӏѵАВЕІКМНОРСТУХҺЈЅԌԚԜӀѴ", "abeikmhopctyxhjsdqwlvABEIKMHOPCTYXHJSGQWIV")
_GREEK = ("αιικνορυχγωΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aiikvopuxywABEZHIKMNOPTYX")
_OTHERS = ("օսոհյցԱՍՕıɡɑᴄᴏᴠᴡᴢⅼ", "ounhjgUUOigacovwzl")
LOOKALIKES = {
    ord(odd): plain for odds, plains in (_CYRILLIC, _GREEK, _OTHERS) for odd, plain in zip(odds, plains, strict=True)
}
"""Maps the code of a letter of another script to the ASCII letter that looks the same."""


def paintable(text: str, *, newlines: bool = True, reveal: bool = False) -> str:
    """Return ``text`` without terminal sequences, with control characters as visible pictures.

    ``newlines`` False joins the lines, for rows and titles. ``reveal`` shows characters without width or with a
    direction (``‹U+202E›``) and keeps the text inside terminal sequences: use it for text that the user is about to
    approve, because a shell would run those words. Otherwise invisible characters are removed where that changes
    nothing visible.
    """
    if _SUSPECT.search(text):
        if not reveal:
            text = _SEQUENCE.sub("", text)
        text = text.replace("\r\n", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
        text = _CONTROL.sub(_picture, text)
        text = _PILE.sub(r"\1", text)
        if not reveal:
            text = _without_invisible(text)
    if reveal and not text.isascii():
        text = _REVEALED.sub(lambda found: f"‹U+{ord(found[0]):04X}›", text)
    if not newlines:
        text = text.replace("\n", "␤").replace("\t", " ")
    return text


def hidden_in(text: str) -> tuple[str, ...]:
    """Return the distinct characters of ``text`` that control a terminal, change the direction or are invisible. Line
    ends and tabs are excluded, and joiners inside emoji and scripts that need them."""
    if not _SUSPECT.search(text):
        return ()
    text = _FLAG.sub("", text.replace("\r\n", "\n"))
    found = [*_CONTROL.findall(text), *_INVISIBLE.findall(text), *(run[0] for run in _LOOSE_JOINER.findall(text))]
    return tuple(dict.fromkeys(found))


def legible(text: str) -> str:
    """Return ``paintable(text)`` without joiners between ASCII letters, which would break up searched words. Use it for
    text that enters a request without a tool call."""
    text = paintable(text)
    return text if text.isascii() else _ASCII_JOINER.sub("", text)


def hidden_removed(text: str) -> str:
    """Return ``text`` without invisible characters and without pictures of control characters."""
    return _UNREAD.sub("", text)


def looks_like(text: str) -> str:
    """Return the ASCII letters that ``text`` looks like, where it has lookalikes."""
    return unicodedata.normalize("NFKC", text).translate(LOOKALIKES)


def _picture(found: re.Match[str]) -> str:
    return _PICTURES.get(ord(found[0]), "\N{REPLACEMENT CHARACTER}")


def _without_invisible(text: str) -> str:
    if not _INVISIBLE.search(text):
        return _JOINER_RUN.sub(r"\1", text)
    parts: list[str] = []
    last = 0
    for flag in _FLAG.finditer(text):
        parts += (_INVISIBLE.sub("", text[last : flag.start()]), flag[0])
        last = flag.end()
    parts.append(_INVISIBLE.sub("", text[last:]))
    return _JOINER_RUN.sub(r"\1", "".join(parts))


REMINDER, INSTRUCTIONS, SKILL = "system-reminder", "project-instructions", "skill"
OURS = frozenset({REMINDER, INSTRUCTIONS, SKILL})
CONTROL = OURS | {
    *("system", "system-prompt", "system-message", "developer", "human", "assistant", "tool-use", "tool-result"),
    *("tool-call", "tool-response", "tool-output", "function-call", "function-calls", "function-results"),
    *("function-response", "antml", "invoke", "thinking", "sys", "inst", "start-of-turn", "end-of-turn"),
}
"""Tags of ba, and tags by which models mark the speaker; several servers treat such words in a text as real markers."""
BESIDE_SKILLS = CONTROL - {SKILL}
"""All but the skill tag, which the result that starts a skill contains."""
_OPENERS = "<\N{FULLWIDTH LESS-THAN SIGN}\N{SMALL LESS-THAN SIGN}"
MARK = "‹"
"""Replaces the first character of a control tag."""
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
    """Return ``text`` with ``‹`` as the first character of every tag named in ``names``, however the name is spelled:
    in capitals, with spaces, hidden characters or lookalike letters."""
    if any(opener in text for opener in _OPENERS):
        text = _TAG.sub(lambda found: "‹" if _named(found[1], names) else found[0], text)
        if names >= BESIDE_SKILLS:
            text = _TOKEN.sub("‹", text)
    return _TURN.sub("‹", text) if names >= BESIDE_SKILLS and "INST]" in text.upper() else text


def restored(text: str) -> str:
    """Return ``text``, which quotes the output of ``neutralized``, with the first characters of its tags restored."""
    if MARK not in text:
        return text

    def first(found: re.Match[str]) -> str:
        inside = found[1]
        if _IN_BRACKETS.match(inside):
            return "["
        return "<" if _IN_BARS.match(inside) or _named(inside, CONTROL) else MARK

    return _VISIBLE.sub(first, text)


def _named(inside: str, names: Set[str]) -> bool:
    """Return whether the text after an opening bracket begins with one of ``names``."""
    found = _NAME.match(inside if inside.isascii() else _plain(inside))
    if found is None:
        return False
    words = _SPACES.split(found[1].casefold())[:3]
    if any("-".join(words[:count]) in names for count in range(1, len(words) + 1)):
        return True
    return names >= BESIDE_SKILLS and any("".join(words[:count]) in _FLAT for count in range(1, len(words) + 1))


def _plain(inside: str) -> str:
    """Return the ASCII letters that ``inside`` looks like, without combining marks; any dash becomes a hyphen."""
    kinds = ((letter, unicodedata.category(letter)) for letter in looks_like(hidden_removed(inside)))
    apart = "".join("-" if kind == "Pd" else letter for letter, kind in kinds)
    return "".join(letter for letter in unicodedata.normalize("NFD", apart) if not unicodedata.combining(letter))
