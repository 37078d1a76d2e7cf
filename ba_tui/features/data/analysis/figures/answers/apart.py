"""What has digits and is no figure: names, ids, versions, ordinals, ranks, list numbers, references, quotes.

Dates and times are read in moments. A reason is the name that verdicts carry.
"""

from __future__ import annotations

from collections.abc import Iterator

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.figures.answers.outline import Outline
from ba_tui.features.data.analysis.figures.words.lexicon import (
    CJK_LABELS,
    CJK_ORDINALS,
    CODE_WORDS,
    GERMAN_RANKED,
    PREFIXES,
    RANK_HEADERS,
    STRONG_LABELS,
    WEAK_LABELS,
)

_ADDRESS = regex(
    r"(?:https?|ftp|file|s3)://[^\s)>\]|]+|www\.[^\s)>\]|]+|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}\.[\w.]{1,200}"
)
_PATH = regex(
    r"(?<![\w/~.-])[\w/~.-]{0,250}[\w-]\.(?:csv|tsv|json|jsonl|parquet|xlsx?|py|md|txt|sqlite|db|sql|ya?ml|toml|html?|png|svg|pdf|log|zip|gz|tar|sh|js|ts"
    r"|rs|go|c|h|cpp|java|rb|ipynb|arrow|feather|duckdb)\b(?::\d+(?::\d+)?)?"
)
_DOTTED = regex(r"\d+(?:\.\d+){2,}(?:[-+]?[a-z]+[.\d]*)?")
_ORDINAL = regex(r"(?:st|nd|rd|th|ers?|re|ère|ème|eme|es?|a|o)(?![a-zA-ZÀ-ÿ])|[ºª](?![CF])")
_REFERENCE = regex(r"\[\^?[A-Z]?\d{1,4}\]")
_LIST_NUMBER = regex(r"(?m)^[ \t>]*(?:[-*+][ \t]+)?(?:\*\*)?\(?(\d{1,3})[.)](?:\*\*)?[ \t]")
_HEADING_NUMBER = regex(r"(?m)^[ \t]*#{1,6}[ \t]+(?:[A-Za-z]+ )?(\d{1,3}(?:\.\d+)*)(?:[.):]|[ \t])")
_QUOTED = regex(
    r"\"[^\"\n]{6,400}\"|“[^”\n]{6,400}”|„[^“”\n]{6,400}[“”]|«[^»\n]{6,400}»|「[^」\n]{4,400}」|『[^』\n]{4,400}』"
)
_RATIO_BEHIND = regex(r"[ \u00a0]?(?:in|to|zu|von|of|out of|sur|à|de cada|a|:|比|对|auf)[ \u00a0]?(?=\d)")
_RATIO_BEFORE = regex(r"\d[ \u00a0]?(?:to|zu|à|:|比|对|contre)[ \u00a0]?$")
_SPECIAL = regex(r"24/7(?!\d)|50[/:-]50(?!\d)|80/20(?!\d)|9/11(?!\d)|360°")
_CHAIN = regex(r"[ \u00a0]?(?:,|and|und|et|y|e|to|bis|à|–|-|—|/|&|or|oder|、|和|至)[ \u00a0]?(?:and |und )?")
_CHAINED = frozenset({"line_numbers", "figure_ref", "status_code"})
_MARKED = frozenset({"status_code", "version"})
"""May have a colon or the like between word and number."""
_MISSING = ("missing line", "fehlende zeile", "lignes manquantes", "uncovered line")


@frozen
class Apart:
    """Digits of an answer that are no figure, and why."""

    start: int
    end: int
    reason: str


def fixed(text: str, prompt: str, outlined: Outline) -> list[Apart]:
    """Code, quotes, addresses, paths, references and the numbers of lists and headings: in order, without overlaps."""
    found = [Apart(a, b, "code") for a, b in outlined.code]
    found += [Apart(a, b, "quote") for a, b in _quotes(text, " ".join(prompt.split()), outlined)]
    found += [Apart(*match.span(1), "list_number") for match in _LIST_NUMBER.finditer(text)]
    if "#" in text:
        found += [Apart(*match.span(1), "heading") for match in _HEADING_NUMBER.finditer(text)]
    if "[" in text:
        found += [Apart(*match.span(), "id") for match in _REFERENCE.finditer(text)]
    if "//" in text or "www." in text or "@" in text:
        found += [Apart(*match.span(), "address") for match in _ADDRESS.finditer(text)]
    found += [Apart(*match.span(), "name") for match in _PATH.finditer(text)]
    flat: list[Apart] = []
    for each in sorted(found, key=lambda span: (span.start, -span.end)):
        if not flat or each.start >= flat[-1].end:
            flat.append(each)
    return flat


def _quotes(text: str, said: str, outlined: Outline) -> Iterator[tuple[int, int]]:
    """Where the answer repeats the person's own words: block quotes and quotation marks."""
    if not said:
        return
    for block in outlined.blocks:
        if block.kind == "quote":
            quoted = " ".join(text[slice(*block.span)].lstrip("> \t").split()).strip("\"“”'„ ")
            if quoted and quoted in said:
                yield block.span
    for found in _QUOTED.finditer(text):
        inner = " ".join(found[0][1:-1].split())
        if len(inner) >= 8 and inner in said:
            yield found.span()


def special_at(text: str, start: int, end: int) -> Apart | None:
    """A saying, or a number with two or more dots: a version or a network address."""
    following = text[end : end + 1]
    if following == "." and (found := _DOTTED.match(text, start)):
        groups = found[0].split(".")
        if len(groups[0]) > 3 or any(len(group) != 3 for group in groups[1:]):
            return Apart(start, found.end(), "version")
    if following and following in "/:-°" and (found := _SPECIAL.match(text, start)):
        return Apart(start, found.end(), "saying")
    return None


def name_around(text: str, start: int, end: int) -> Apart | None:
    """The name that digits are part of, such as ``EV4394``, ``p95``, ``covid-19`` or ``d860078``."""
    before = text[start - 1] if start else " "
    joined = before in "-–" and start > 1 and _latin(text[start - 2])
    if joined or before in "_@\\" or _latin(before):
        begin = start - 1
        while begin and (text[begin - 1].isalnum() or text[begin - 1] in "_-.@/\\") and text[begin - 1] < "ɐ":
            begin -= 1
        word = text[begin:start]
        if word.lower() in PREFIXES or not any(letter.isalpha() for letter in word):
            return None
        return Apart(begin, _word_end(text, end), "name")
    if _latin(text[end : end + 1]):
        stop = _word_end(text, end)
        word = text[start:stop]
        if any(letter.isdigit() for letter in word[end - start :]) and not word[end - start :].lower().startswith("e"):
            return Apart(start, stop, "name")
    return None


def name_behind(text: str, start: int, end: int) -> Apart:
    """The name whose first characters are the number at ``start`` to ``end``: ``9E``, ``3D``."""
    return Apart(start, _word_end(text, end), "name")


def _latin(letter: str) -> bool:
    return bool(letter) and letter < "ɐ" and letter.isalpha()


def _word_end(text: str, place: int) -> int:
    while place < len(text) and (text[place].isalnum() or text[place] in "_-") and text[place] < "ɐ":
        place += 1
    return place - 1 if text[place - 1] == "-" else place


def ordinal(text: str, start: int, end: int) -> Apart | None:
    """A whole number whose next characters make it an ordinal."""
    following = text[end : end + 1]
    if following == ".":
        word = text[end + 1 : end + 16].strip(" \u00a0").split(" ", 1)[0].strip(".,;:")
        return Apart(start, end + 1, "ordinal") if word.lower() in GERMAN_RANKED and word[0].isupper() else None
    found = _ORDINAL.match(text, end) if following.isalpha() or following in "ºª" else None
    return Apart(start, found.end(), "ordinal") if found and following else None


def labelled(text: str, start: int, end: int, words: tuple[str, str], *, noun: bool) -> Apart | None:
    """What the words before a number say: ``line 42``, ``Python 3.11``, ``第 2 名``.

    ``words``: the last two before it, in lower case. ``noun``: a word that can be counted follows it.
    """
    last = words[1]
    if last[-1:] > "\u2e7f":
        return _cjk_labelled(text, start, end, last)
    if text[start - 1 : start] == "#":
        return Apart(start - 1, end, "id")
    if last in CODE_WORDS:
        return Apart(start, end, "status_code") if words[0] in {"exit", "status", "error", "return", "http"} else None
    reason = STRONG_LABELS.get(last, "")
    adjacent = text[start - 1 : start] in " \u00a0"
    if not reason and last in WEAK_LABELS and not noun:
        reason = "label"
    return Apart(start, end, reason) if reason and (adjacent or reason in _MARKED) else None


def _cjk_labelled(text: str, start: int, end: int, last: str) -> Apart | None:
    label = next((name for name in CJK_LABELS if last.endswith(name)), "")
    if not label:
        return None
    if label != "第":
        return Apart(start, end, "label") if text[start - 1] != "，" else None
    if text[end : end + 2].lstrip()[:1] not in CJK_ORDINALS:
        return None
    return Apart(text.rindex("第", 0, start), end, "ordinal")


def chained(text: str, last: Apart | None, start: int) -> bool:
    """Whether a number goes on a list that began with one that is apart: ``lines 3, 5 and 8``."""
    if last is None or last.reason not in _CHAINED or start - last.end > 8:
        return False
    return bool(_CHAIN.fullmatch(text, last.end, start))


def ratio_base(text: str, start: int, end: int) -> bool:
    """Whether a bare 1 is the base of a ratio: ``6 to 1``, ``1 in 3``."""
    if end - start != 1 or text[start] != "1":
        return False
    return bool(_RATIO_BEHIND.match(text, end) or _RATIO_BEFORE.search(text, max(0, start - 6), start))


def apart_column(header: str) -> str:
    """Why the whole numbers of a column with this head are no figures; empty when they are."""
    plain = header.strip(" *_`|").lower()
    if plain in RANK_HEADERS:
        return "rank"
    return "line_numbers" if plain in {"line", "lines", "zeile", "ligne", "行号"} or plain.startswith(_MISSING) else ""
