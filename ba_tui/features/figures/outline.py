"""The structure of an answer: headings, paragraphs, list items, table cells, their sentences and clauses; and digits
that are no figures."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.figures.moments import (
    CJK_LABELS,
    CJK_ORDINALS,
    CODE_WORDS,
    GERMAN_RANKED,
    PREFIXES,
    RANK_HEADERS,
    STRONG_LABELS,
    WEAK_LABELS,
    listed,
)
from ba_tui.features.figures.units import unit_at

Span = tuple[int, int]
NOWHERE: Span = (0, 0)

_FENCE = regex(r"^[ \t]*(```+|~~~+)[^\n]*\n.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", 24)
"""Matched with MULTILINE and DOTALL."""
_CODE = regex(r"(?<!`)(`{1,3})(?!`)[^\n]*?[^`\n]\1(?!`)")
_RULE = regex(r"[ \t]*\|?[ \t]*:?-{2,}[-:| \t]*$")
_HEADING = regex(r"[ \t]*#{1,6}[ \t]")
_ITEM = regex(r"[ \t]*(?:[-*+•·‣]|\(?\d{1,3}[.)]|[a-z]\))[ \t]+")
_QUOTE = regex(r"[ \t]*>+[ \t]?")
_SENTENCE = regex(r"[。！？!?；](?:[”\"'）)]*)|[.;](?:\*\*|__|[\"”')\]])*(?=\s+(?![a-zäöüéè(])|\s*$)|\n")
LONGEST_CLAUSE = 400
_CLAUSE = regex(r"[,，、;；:()（）—]|\s[–-]\s")
_ABBREVIATED = listed(
    "approx ca vs e.g i.e z.b d.h bzw inkl incl nr no mio mrd tsd fig abb st dr mr mrs ms inc sog usw etc p.a"
)


@frozen
class Cell:
    """A table cell of an answer; ``label`` is the first cell of its row, ``header`` the head of its column."""

    span: Span
    label: Span
    header: Span
    column: int


@frozen
class Block:
    """A heading, paragraph, list item or table row, with its heading. ``lead`` is the block before a list, ``group``
    the number of the list or table."""

    span: Span
    kind: str
    heading: Span
    lead: Span
    group: int
    cells: tuple[Cell, ...] = ()


@frozen
class AnswerOutline:
    """The blocks of an answer in order. ``code`` are the spans of fenced and inline code."""

    text: str
    blocks: tuple[Block, ...]
    code: tuple[Span, ...]
    starts: tuple[int, ...]

    def block_at(self, place: int) -> Block:
        """Return the block at ``place``, or the last one before it."""
        return self.blocks[max(0, bisect_right(self.starts, place) - 1)]


def code_spans(text: str) -> tuple[Span, ...]:
    """Return the spans of code, without overlaps and in order."""
    if "`" not in text and "~~~" not in text:
        return ()
    fences = [found.span() for found in _FENCE.finditer(text)]
    inline = [found.span() for found in _CODE.finditer(text) if not any(a <= found.start() < b for a, b in fences)]
    return tuple(sorted((*fences, *inline)))


class _Builder:
    """Reads lines; the previous ones determine what a line belongs to."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.blocks: list[Block] = []
        self.heading: Span = NOWHERE
        self.lead: Span = NOWHERE
        self.group = 0
        self.kind = ""
        self.header: tuple[Span, ...] = ()

    def line(self, start: int, end: int, following: str) -> None:
        text = self.text
        head = text[start : start + 1]
        stripped = text[start:end].strip()
        if not stripped:
            self.kind = "" if self.kind != "item" else self.kind
            return
        if "|" in stripped and (stripped[0] == "|" or self.kind == "row" or _RULE.match(following)):
            self._row(start, end, following)
            return
        if head in "# \t" and _HEADING.match(text, start, end):
            self.heading, self.lead, self.kind = (start, end), NOWHERE, "heading"
            self._add((start, end), "heading")
        elif head in ">" and _QUOTE.match(text, start, end):
            self._add((start, end), "quote")
            self.kind = "quote"
        elif _ITEM.match(text, start, end):
            if self.kind != "item":
                self.group += 1
            self._add((start, end), "item")
            self.kind = "item"
        elif self.kind == "text":
            last = self.blocks[-1]
            self.blocks[-1] = Block((last.span[0], end), last.kind, last.heading, last.lead, last.group)
            self.lead = self.blocks[-1].span
        else:
            self._add((start, end), "text")
            self.lead, self.kind = (start, end), "text"

    def _add(self, span: Span, kind: str, cells: tuple[Cell, ...] = ()) -> None:
        group = self.group if kind in {"item", "row", "head"} else 0
        self.blocks.append(Block(span, kind, self.heading, self.lead if group else NOWHERE, group, cells))

    def _row(self, start: int, end: int, following: str) -> None:
        spans = _cells(self.text, start, end)
        if _RULE.match(self.text, start, end):
            return
        if self.kind != "row":
            self.group += 1
            self.header = spans if _RULE.match(following) else ()
            self.kind = "row"
            if self.header:
                self._add((start, end), "head", tuple(Cell(span, NOWHERE, NOWHERE, i) for i, span in enumerate(spans)))
                return
        heads = self.header
        label = spans[0] if spans else NOWHERE
        cells = (Cell(span, label, heads[i] if i < len(heads) else NOWHERE, i) for i, span in enumerate(spans))
        self._add((start, end), "row", tuple(cells))


def _cells(text: str, start: int, end: int) -> tuple[Span, ...]:
    bounds = [start - 1, *(place for place in range(start, end) if text[place] == "|"), end]
    spans = [(a + 1, b) for a, b in pairwise(bounds)]
    if spans and not text[slice(*spans[0])].strip():
        spans = spans[1:]
    if spans and not text[slice(*spans[-1])].strip():
        spans = spans[:-1]
    return tuple(spans)


def outline(text: str) -> AnswerOutline:
    """Return the structure of a normalized text. Fenced code is no block."""
    code = code_spans(text)
    fences = [(a, b) for a, b in code if text[a:b].lstrip()[:3] in {"```", "~~~"} and "\n" in text[a:b]]
    builder = _Builder(text)
    start = 0
    for line in text.split("\n"):
        end = start + len(line)
        if not (fences and any(a <= start < b or a <= end - 1 < b for a, b in fences)):
            stop = text.find("\n", end + 1)
            builder.line(start, end, text[end + 1 : stop if stop >= 0 else len(text)])
        start = end + 1
    blocks = builder.blocks or [Block((0, len(text)), "text", NOWHERE, NOWHERE, 0)]
    return AnswerOutline(text, tuple(blocks), code, tuple(block.span[0] for block in blocks))


def sentences(text: str, span: Span) -> tuple[Span, ...]:
    """Yield the sentences of a block."""
    found: list[Span] = []
    start, end = span
    for mark in _SENTENCE.finditer(text, start, end):
        if (
            text[mark.start()] == "."
            and text[start : mark.start()].rpartition(" ")[2].lower().strip("(*") in _ABBREVIATED
        ):
            continue
        if mark.end() > start:
            found.append((start, mark.end()))
        start = mark.end()
    if start < end:
        found.append((start, end))
    return tuple(found)


def clause(text: str, sentence: Span, place: int) -> Span:
    """Return the part of ``sentence`` between commas, colons and brackets around ``place``; distant marks are
    ignored."""
    start, end = sentence
    for mark in _CLAUSE.finditer(text, max(start, place - LONGEST_CLAUSE), min(end, place + LONGEST_CLAUSE)):
        if (
            mark[0] in ",:"
            and text[mark.start() - 1 : mark.start()].isdigit()
            and text[mark.end() : mark.end() + 1].isdigit()
        ):
            continue
        if mark.start() >= place:
            return start, mark.start()
        start = mark.end()
    return start, end


# Digits that are no figures: names, ids, versions, ordinals, ranks, list numbers, references, quotes. Dates and times
# are parsed in ``moments``. A reason is shown with the verdict.

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
_SMALL_SHARE = regex(r"(?<![\w.,$€£¥-])([1-9]) in ([2-9]|10)\b(?![.,]?\d)")
_RATIO_BEFORE = regex(r"\d[ \u00a0]?(?:to|zu|à|:|比|对|contre)[ \u00a0]?$")
_SPECIAL = regex(r"24/7(?!\d)|50[/:-]50(?!\d)|80/20(?!\d)|9/11(?!\d)|360°")
_CHAIN = regex(r"[ \u00a0]?(?:,|and|und|et|y|e|to|bis|à|–|-|—|/|&|or|oder|、|和|至)[ \u00a0]?(?:and |und )?")
_CHAINED = frozenset({"line_numbers", "figure_ref", "status_code"})
_MARKED = frozenset({"status_code", "version"})
"""May have a colon or similar between word and number."""
_MISSING = ("missing line", "fehlende zeile", "lignes manquantes", "uncovered line")


@frozen
class Apart:
    """Digits of an answer that are no figure, and the reason."""

    start: int
    end: int
    reason: str


def fixed(text: str, prompt: str, outlined: AnswerOutline) -> list[Apart]:
    """Return code, quotes, addresses, paths, references and the numbers of lists and headings: in order, without
    overlaps."""
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


def _quotes(text: str, said: str, outlined: AnswerOutline) -> Iterator[tuple[int, int]]:
    """Yield repetitions of the user's own words: block quotes and quotation marks."""
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
    """Return an idiom, or a number with two or more dots: a version or network address."""
    following = text[end : end + 1]
    if following == "." and (found := _DOTTED.match(text, start)):
        groups = found[0].split(".")
        if len(groups[0]) > 3 or any(len(group) != 3 for group in groups[1:]):
            return Apart(start, found.end(), "version")
    if following and following in "/:-°" and (found := _SPECIAL.match(text, start)):
        return Apart(start, found.end(), "saying")
    return None


def name_around(text: str, start: int, end: int) -> Apart | None:
    """Return the name that digits are part of, such as ``EV4394``, ``p95``, ``covid-19`` or ``d860078``."""
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
    """Return the name that starts with the number at ``start`` to ``end``: ``9E``, ``3D``."""
    return Apart(start, _word_end(text, end), "name")


def _latin(letter: str) -> bool:
    return bool(letter) and letter < "ɐ" and letter.isalpha()


def _word_end(text: str, place: int) -> int:
    while place < len(text) and (text[place].isalnum() or text[place] in "_-") and text[place] < "ɐ":
        place += 1
    return place - 1 if text[place - 1] == "-" else place


def ordinal(text: str, start: int, end: int) -> Apart | None:
    """Return a whole number that the following characters make an ordinal."""
    following = text[end : end + 1]
    if following == ".":
        word = text[end + 1 : end + 16].strip(" \u00a0").split(" ", 1)[0].strip(".,;:")
        return Apart(start, end + 1, "ordinal") if word.lower() in GERMAN_RANKED and word[0].isupper() else None
    found = _ORDINAL.match(text, end) if following.isalpha() or following in "ºª" else None
    return Apart(start, found.end(), "ordinal") if found and following else None


def labelled(text: str, start: int, end: int, words: tuple[str, str], *, noun: bool) -> Apart | None:
    """Return a number that the preceding words make a label: ``line 42``, ``Python 3.11``, ``第 2 名``.

    ``words`` are the last two before it, in lower case. ``noun``: a countable noun follows.
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
    """Return whether a number continues a list that started with a label: ``lines 3, 5 and 8``."""
    if last is None or last.reason not in _CHAINED or start - last.end > 8:
        return False
    return bool(_CHAIN.fullmatch(text, last.end, start))


def ratio_base(text: str, start: int, end: int) -> bool:
    """Return whether a whole number is the base of a ratio: ``6 to 1``, ``1 in 3``, ``2 in 5``."""
    if start >= 5 and text[start - 4 : start] == " in " and share_base(text, start - 5):
        return True
    if end - start != 1 or text[start] != "1":
        return False
    return bool(_RATIO_BEHIND.match(text, end) or _RATIO_BEFORE.search(text, max(0, start - 6), start))


def share_base(text: str, start: int) -> int:
    """Return 5 for the 2 at ``start`` in ``2 in 5``, a share of about 40 %; 0 for any other number, such as the 2 in
    ``2 in 5 weeks``."""
    found = _SMALL_SHARE.match(text, start)
    if found is None or int(found[1]) >= int(found[2]) or unit_at(text, found.end()).unit:
        return 0
    return int(found[2])


def apart_column(header: str) -> str:
    """Return why the whole numbers of a column with this head are no figures; empty when they are."""
    plain = header.strip(" *_`|").lower()
    if plain in RANK_HEADERS:
        return "rank"
    return "line_numbers" if plain in {"line", "lines", "zeile", "ligne", "行号"} or plain.startswith(_MISSING) else ""
