"""Words that stand for text which was left out: written into a file, they would take the place of that text."""

from __future__ import annotations

import re

from ba_tui.core.text.patterns import regex
from ba_tui.tools.editing.documents import plain_lines
from ba_tui.tools.failed import Failed

SHOWN = 80
_DOTS = r"(?:\.{3}|…)"
_OPEN = regex(r"\s*(?:#+|//+|/\*+|\*+|--+|;+|%+|<!--+|\{/\*)?\s*")
_CLOSE = regex(r"\s*(?:\*+/\}?|--+>)?\s*$")
_NOUN = (
    r"(?:code|files?|functions?|methods?|class(?:es)?|components?|contents?|implementations?|imports?|lines?|logic|body|"
    r"sections?|fields?|props?|propert(?:y|ies)|tests?|cases?|entries|items|rows|text|script|module|config\w*|styles?)"
)
_PLACEHOLDER = regex(
    r"(?:(?:keep )?(?:the |your |this |all |my )?(?:rest|remainder) of\b[^.,…]{0,60}"
    r"|(?:keep )?(?:all |the |my |your )?(?:other|existing|unchanged|remaining|previous|original)\s+(?:\w+\s+){0,2}"
    rf"{_NOUN}\b[^.,…]{{0,40}}|(?:(?:the )?{_NOUN} (?:is |are )?)?(?:unchanged|(?:the )?same as before))",
    re.IGNORECASE,
)
_SAYS = regex(
    rf"{_DOTS}|\bunchanged\b|\b(?:stays?|remains?|is|are) (?:exactly )?(?:the same|as is)\b|\bas before\W*$|\bhere\W*$"
    r"|\b(?:omitted|for brevity|not shown|left out)\b",
    re.IGNORECASE,
)
_LIKELY = regex(r"rest of|remainder of|other|existing|unchanged|remaining|previous|original|same as", re.IGNORECASE)


def is_placeholder(line: str) -> bool:
    """Whether ``line`` is a comment or words in brackets or with dots that stand for what was left out."""
    if not _LIKELY.search(line):
        return False
    opened = _OPEN.match(line)
    words = _CLOSE.sub("", line[opened.end() if opened else 0 :])
    inner = words.strip(" \t.…()[]")
    marked = bool(opened and opened[0].strip()) or words[:1] in {"(", "[", ".", "…"} or words.endswith(("...", "…"))
    return marked and bool(_PLACEHOLDER.fullmatch(inner)) and bool(_SAYS.search(words))


def refuse_placeholders(old: str, new: str) -> None:
    """Raises Failed when a line of ``new`` stands for something that was left out and does not stand in ``old``."""
    if not _LIKELY.search(new):
        return
    there = {line.strip() for line in plain_lines(old).split("\n")}
    for line in plain_lines(new).split("\n"):
        if is_placeholder(line) and line.strip() not in there:
            message = (
                f"“{line.strip()[:SHOWN]}” stands for text that was left out, and would take its place in the file."
            )
            raise Failed("validation_error", message, "Write all of it, or change with edit_file only what is new.")
