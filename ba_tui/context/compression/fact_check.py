"""Checks a summary for missing facts: paths, addresses and figures of its source.

Pure, and by rules only; English and Chinese. User texts are not checked: they stay beside the summary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ba_tui.context.compression.notes import read
from ba_tui.context.compression.rounds import Count, rounds_of
from ba_tui.context.compression.user_text import both_ends, texts_of
from ba_tui.core.messages import Message, Text, ToolUse, user
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import clipped

HEADING = "## Facts that the notes above left out"
LONGEST = 240
"""Characters of one fact."""
SCANNED = 20_000
"""Characters of one text that are searched, half from either end."""
ARGUMENT = 400
"""Characters of one argument of a call in which paths are looked for."""
_URL = regex(r"\bhttps?://[^\s<>\"'`)\]}，。；、）】]{4,200}")
_PATH = regex(
    r"(?<![\w/.:])(?:~|\.{1,2})?/?(?:[\w.@+-]{1,80}/){1,12}[\w.@+-]{1,80}(?<![.,:])"
    r"|(?<![\w/.])[\w-]{1,60}\.(?:py|md|ya?ml|json|jsonl|csv|tsv|toml|txt|sql|sh|js|ts|tsx|jsx|go|rs|java|c|h|cpp|html|css"
    r"|ipynb|parquet|xlsx|pdf|ini|cfg|lock|log|conf|env)\b"
)
_FIGURE = regex(
    r"(?<![\w.,/:-])[$€£¥]?\d[\d,]*(?:\.\d+)?(?:\s?(?:%|ms|s|min|h|kb|mb|gb|tb|kib|mib|gib|tokens?|rows?|users?|items?|files?"
    r"|requests?|errors?|days?|hours?|minutes?|seconds?|usd|eur|gbp|cny|rps|qps|k|m|bn|million|billion|万|亿|元|行|个|次|秒"
    r"|毫秒|分钟|小时|天|人|倍|条|件)(?![a-zA-Z]))?(?![\w/])",
    re.IGNORECASE,
)
_DATE = regex(r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2})?|\d{1,4}年\d{1,2}月(?:\d{1,2}日)?|\d{1,2}月\d{1,2}日")
_SENTENCE = regex(r"[^\n。！？!?.]*(?:\.(?=\S)[^\n。！？!?.]*)*[。！？!?.]?")


def left_out(source: Sequence[Message], summary: str, room: int, count: Count) -> list[str]:
    """Return the facts of ``source`` that ``summary`` lacks, in at most ``room`` tokens: the most important kind first,
    in each kind the newest first."""
    found: list[str] = []
    held = _normal("\n".join([summary, *_theirs(source)]))
    spent = 0
    for fact, marks in _facts(source):
        if all(_holds(held, _normal(mark)) for mark in marks):
            continue
        cost = count([user(fact)])
        if spent + cost > room:
            continue
        spent += cost
        found.append(fact)
        held += "\n" + _normal(fact)
    return found


def completed(source: Sequence[Message], summary: str, room: int, count: Count) -> tuple[str, int]:
    """Return ``summary`` with a list of missing facts at its end, and their number."""
    facts = left_out(source, summary, room, count)
    if not facts:
        return summary, 0
    return "\n".join([summary.rstrip(), "", HEADING, *(f"- {fact}" for fact in facts)]), len(facts)


def _holds(held: str, mark: str) -> bool:
    """Return whether ``mark`` is in ``held``. Numbers count whole: 12 is not in 4125, nor $12 in $125."""
    before = r"(?<![\d.])" if mark[:1].isdigit() else ""
    behind = r"(?!\d)" if mark[-1:].isdigit() else ""
    return re.search(f"{before}{re.escape(mark)}{behind}", held) is not None


def _facts(source: Sequence[Message]) -> Iterator[tuple[str, Sequence[str]]]:
    """Return facts with the marks that a summary must have; otherwise the fact is added."""
    newest = list(reversed(source))
    spoken = [text for message in newest for text in _texts(message)]
    yield from _named(_URL, spoken)
    yield from _named(_PATH, [*_arguments(newest), *spoken])
    for text in spoken:
        for sentence in _sentences(text):
            marks = [*_DATE.findall(sentence), *(mark for mark in map(_figure, _FIGURE.findall(sentence)) if mark)]
            if marks:
                yield sentence, marks


def _named(pattern: re.Pattern[str], texts: Iterable[str]) -> Iterator[tuple[str, Sequence[str]]]:
    for name in dict.fromkeys(found.rstrip(".,;:!?") for text in texts for found in pattern.findall(text)):
        yield name, (name.rstrip("/"),)


def _figure(found: str) -> str:
    """Return the number if it is informative: a single digit without a unit is not."""
    return re.sub(r"[^\d.,]+$", "", found).strip() if len(found.strip()) > 1 else ""


def _arguments(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        for block in message.blocks:
            if isinstance(block, ToolUse):
                yield from (value[:ARGUMENT] for value in block.input.values() if isinstance(value, str))


def _texts(message: Message) -> Iterator[str]:
    """Return the agent's texts, and those in the notes of an earlier compression."""
    if message.origin == "compaction":
        notes = read([message])
        yield from (fact.text for fact in notes.facts)
        yield from (named.text for named in notes.strings)
    elif message.role == "assistant":
        yield from (both_ends(block.text, SCANNED) for block in message.blocks if isinstance(block, Text))


def _theirs(source: Sequence[Message]) -> Iterator[str]:
    parts = rounds_of(source)
    for text in (*read(parts.earlier).texts, *(text for item in parts.rounds for text in texts_of(item))):
        yield from (both_ends(block.text, SCANNED) for block in text.blocks)


def _sentences(text: str) -> Iterator[str]:
    for found in _SENTENCE.findall(text):
        sentence = " ".join(found.split()).strip("-*#> ")
        if len(sentence) > 2:
            yield clipped(sentence, LONGEST)


def _normal(text: str) -> str:
    return " ".join(text.replace(",", "").casefold().split())
