"""The content of old rounds as single facts with a score: a sentence, a call with its outcome, a line, a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from heapq import nlargest
from math import sqrt
from typing import Any, Literal, TypeAlias, cast

from ba_tui.context.compression.keywords import (
    KnownWords,
    Phrases,
    decided,
    is_instruction,
    line_score,
    masked,
    prose_score,
    scored_lines,
)
from ba_tui.context.compression.rounds import Round
from ba_tui.context.compression.user_text import PASTED, UserText, both_ends, is_answer, lines_in, written_in
from ba_tui.core.messages import Document, Image, Message, Text, ToolOutput, ToolUse
from ba_tui.core.results import failure_frame
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen

# The weight of each part of a conversation without its words. It only orders what competes for room: nothing is so
# important that a conversation can't be made to fit.

FADING = 0.45
"""How much less the oldest part weighs than the newest."""


class Importance(IntEnum):
    """User texts and errors, then tool output, then reasoning, then arguments of calls."""

    LOW = 1
    MEDIUM = 3
    HIGH = 4
    CRITICAL = 8


def weight(level: Importance, age: float, parts: int) -> float:
    """Return the weight of each of ``parts`` parts: less for older ones (0 to 1) and for larger wholes."""
    return level * (1 - FADING * age) / sqrt(max(1, parts))


FactKind: TypeAlias = Literal["person", "todo", "decision", "trouble", "said", "step", "seen", "note"]
"""``person``: a sentence of a user text that is cut or left out; ``note``: a line of a model's summary."""
LONGEST = 300
"""Characters of one fact; longer ones are split."""
NOVEL = 0.6
ANSWERING, TELLING = 3.5, 9.0
"""Factors on a sentence of an answer, and on one with a figure, a name or a reason; 1 for one on the way to it."""
SCANNED = 200_000
"""Characters of a lost text that are searched, half from either end."""
INSTRUCTING = 5.0
"""Added for a sentence that is an instruction for everything that follows."""
NEWEST, LATEST, DONE = 5, 12.0, 4.0
"""How many of the last actions are described in full; the weight of each, as the work can't continue without them; and
the weight of an earlier one within a text."""
WELL, BADLY, UNTOLD = "✓", "✗", "→"
"""The first character of an action: by its outcome, if known."""
IN_FULL, IN_SHORT = 600, 160
"""Characters of an action, in full or in short."""
OF_A_RESULT = 40
"""Lines of one result that are analysed in detail."""
_SENTENCE = regex(
    r"(?<=[.!?])(?<!^\d\.)(?<!^\d\d\.)(?<!\b[Ee]\.g\.)(?<!\bi\.e\.)\s+(?=\S)|(?<=[。！？；])|\n+", re.MULTILINE
)
"""Not after the number of a list item."""
_EMPTY = regex(r"\W*(?:```\w*)?")
_DONE = regex(
    r"^(?:```\w*\n(?P<code>(?:(?!```).*\n)+)```|<(?P<tag>\w+)>\n(?P<inside>(?:(?!</).*\n)+)</(?P=tag)>)\s*\Z",
    re.MULTILINE,
)
"""Code, or lines in a tag, at the end of an answer: the action of a model that makes no calls."""
_END = 4_000
"""Characters of an answer that are searched for its action."""
_COMMANDS = ("command", "cmd", "code", "script")
"""Arguments of calls that run something. Without an exit status, their output is searched for errors."""
_OURS = ("shell", "python", "run_skill_script")
"""Tools that report an exit status."""
_EXIT = regex(r"\[?exit (?:code|status):? (\d+)[^\n]*\s*\Z", re.IGNORECASE)
_BROKE = regex(
    r"^Traceback \(most recent[^\0]*^[\w.]+(?:Error|Exception)\b[^\n]*\s*\Z|^=+ .*\d+ failed|^FAILED ", re.MULTILINE
)
_CHANGING = ("edit", "write", "create", "patch", "replace", "move", "delete", "rename", "insert", "save")
_TARGETS = (
    "path",
    "file_path",
    "filename",
    "file",
    "command",
    "cmd",
    "query",
    "pattern",
    "url",
    "sql",
    "name",
    "question",
)
_PATHS = ("path", "file", "folder", "directory", "source", "destination", "notebook")
_PATCHED = regex(r"^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b/)?)(\S.*)$", re.MULTILINE)
_OPEN = {"pending": "[ ]", "in_progress": "[>]"}


@frozen
class Fact:
    """``step``: the position of its call, or -1. ``place`` orders the facts of a conversation."""

    kind: FactKind
    round: int
    place: int
    text: str
    score: float
    step: int = -1

    @property
    def cost(self) -> int:
        """Return bytes including the line break: a fair measure of tokens in every script."""
        return len(self.text.encode("utf-8", "replace")) + 5


def sentences(text: str) -> Iterator[str]:
    """Return the sentences and lines of ``text``; very long ones in pieces."""
    for part in _SENTENCE.split(text):
        yield from _pieces(part)


def lines(text: str) -> Iterator[str]:
    """Return the lines of ``text``; very long ones in pieces."""
    for line in text.splitlines():
        if len(line) > LONGEST:
            yield from _pieces(line)
        elif said := line.rstrip():
            yield said


def result_lines(output: ToolOutput) -> list[str]:
    """Return the lines of a result; of a failure without those around every failure's message."""
    if output.error is None:
        return list(lines(output.content))
    frame = {line for part in failure_frame(output.error, output.tool_use_id) for line in part}
    return [piece for line in output.content.splitlines() if line not in frame for piece in _pieces(line)]


def _pieces(text: str) -> Iterator[str]:
    start, end = 0, len(text)
    while end - start > LONGEST:
        cut = text.rfind(" ", start + LONGEST // 2, start + LONGEST) + 1 or start + LONGEST
        if piece := text[start:cut].strip():
            yield piece
        start = cut
    last = text[start:].rstrip()
    if last and not last.isspace():
        yield last


def target(call: ToolUse, longest: int = 100) -> str:
    """Return the subject of a call on one line of at most ``longest`` characters."""
    given = call.input
    value = next((given[name] for name in _TARGETS if isinstance(given.get(name), str)), None)
    if value is None:
        value = call.malformed or next((item for item in given.values() if isinstance(item, str)), "")
    return one_line(str(value)[: 4 * longest], longest)


def failed(output: ToolOutput, call: ToolUse | None) -> bool:
    """Return True also for a command that ran and ended with an error. A file that was read may mention any error."""
    if output.is_error or output.exit_status is not None:
        return output.broke
    if call is None or call.name in _OURS or not any(isinstance(call.input.get(name), str) for name in _COMMANDS):
        return False
    end = output.content[-4_000:]
    if found := _EXIT.search(end):
        return int(found[1]) != 0
    return _BROKE.search(end) is not None


def open_todos(messages: Iterable[Message]) -> list[str] | None:
    """Return the unfinished items of the last todo list in a call; None without one."""
    found: list[str] | None = None
    for message in messages:
        for call in message.calls:
            for value in call.input.values():
                items = _items(value)
                if items:
                    found = [f"{_OPEN[state]} {words}" for words, state in items if state in _OPEN]
    return found


def _items(value: Any) -> list[tuple[str, str]]:
    if not isinstance(value, list):
        return []
    found: list[tuple[str, str]] = []
    for item in cast("list[Any]", value):
        if not isinstance(item, dict):
            return []
        entry = cast("dict[str, Any]", item)
        words = next((entry[name] for name in ("content", "title", "task", "text") if entry.get(name)), None)
        if words is None or "status" not in entry:
            return []
        found.append((" ".join(str(words).split())[:LONGEST], str(entry["status"])))
    return found


@frozen
class RoundContents:
    """The content of rounds: ``texts`` of the user, and ``facts`` of everything else."""

    texts: tuple[UserText, ...]
    facts: tuple[Fact, ...]


class ConversationFacts:
    """Collects the facts of old rounds, the oldest first, after ``earlier`` ones. ``focus``: words whose facts get more
    weight; ``later``: the messages that stay, in which a call that failed before may have succeeded."""

    def __init__(
        self, rounds: Sequence[Round], focus: str = "", later: Sequence[Message] = (), earlier: Sequence[Fact] = ()
    ) -> None:
        self._rounds = rounds
        self._calls = 0
        self._focus = [word for word in re.split(r"[\s,，、;；]+", focus.casefold()) if len(word) > 1]
        self._place = 0
        self._found: list[Fact] = []
        self._texts: list[UserText] = []
        self._names: dict[str, ToolUse] = {}
        results = (block for item in rounds for message in item.messages for block in message.blocks)
        self._known = KnownWords.of(block.content for block in results if isinstance(block, ToolOutput))
        whole = [*(message for item in rounds for message in item.messages), *later]
        answers = [message.text for message in whole if message.role == "assistant"]
        answers += [fact.text for fact in earlier if fact.kind == "said"]
        self._phrases = Phrases(sentence for text in answers for sentence in sentences(text))
        self._earlier = earlier
        self._settled = _successes(whole)
        self._newest = {message.id for message in list(filter(_acts, whole))[-NEWEST:]}

    def gather(self) -> RoundContents:
        span = max(1, len(self._rounds) - 1)
        for number, item in enumerate(self._rounds):
            self._round(item, 1 - number / span)
        return RoundContents(tuple(self._texts), (*map(self._again, self._earlier), *self._found))

    def _again(self, fact: Fact) -> Fact:
        """Return a fact of earlier notes with a new score: phrases that were repeated since then weigh less."""
        novelty = self._phrases.novelty(fact.text) if fact.kind == "said" else 1.0
        return replace(fact, score=self._focused(fact.text, fact.score * novelty))

    def _round(self, item: Round, age: float) -> None:
        messages = item.messages
        for place, message in enumerate(messages):
            later = messages[place + 1] if place + 1 < len(messages) else None
            outputs = {out.tool_use_id: out for out in later.blocks if isinstance(out, ToolOutput)} if later else {}
            for found in written_in(message, item.number, begins=place == 0, calls=self._names):
                self._texts.append(replace(found.written, place=self._place))
                self._place += 1 + lines_in(found.written.head)
            for block in message.blocks:
                match block:
                    case Text() if message.role == "assistant":
                        self._prose(item.number, message, block, age)
                    case ToolUse() as call:
                        self._names[call.id] = call
                        self._call(item.number, call, outputs.get(call.id), age, latest=message.id in self._newest)
                    case Image(media_type=kind) | Document(media_type=kind):
                        self._add("said", item.number, f"[{kind} from the user, no longer shown]", 6.0)
                    case _:
                        pass

    def _prose(self, number: int, message: Message, block: Text, age: float) -> None:
        prose, latest = block.text, message.id in self._newest
        if not message.calls and (done := _action(prose)):
            code = done["code"] or done["inside"]
            if latest or len(code) <= IN_SHORT:
                worth = LATEST if latest else DONE * (1 - FADING * age)
                self._add("step", number, f"{UNTOLD} {one_line(code[: 2 * IN_FULL], IN_FULL)}", worth)
                prose = prose[: done.start()]
        said = [sentence.strip() for sentence in sentences(prose) if not _EMPTY.fullmatch(sentence)]
        each = weight(Importance.MEDIUM, age, len(said))
        acts = _acts(message)
        for sentence in said:
            novelty = self._phrases.novelty(sentence)
            tells = prose_score(sentence)
            times = 1.0 if acts else TELLING if tells else ANSWERING
            score = (each * times + tells * (1 - FADING * age)) * novelty
            self._add("decision" if novelty > NOVEL and decided(sentence) else "said", number, sentence, score)

    def _call(self, number: int, call: ToolUse, output: ToolOutput | None, age: float, *, latest: bool) -> None:
        bad = output is not None and failed(output, call)
        self._calls += 1
        trouble = bad and self._settled.get(_key(call), 0) < self._calls
        step = self._place
        score = (2.0 + (2.0 if bad else 1.5 if changes(call) else 0.0)) * (1 - FADING * age)
        about = target(call, IN_FULL) if latest else target(call)
        self._add("step", number, f"{BADLY if bad else WELL} {call.name} {about}".rstrip(), LATEST if latest else score)
        if output is not None and not is_answer(call, output):
            found = result_lines(output)
            level = Importance.CRITICAL if trouble else Importance.HIGH
            lead = f"{call.name} {target(call)[:60]}: " if trouble else ""
            self._lines(number, step, found, weight(level, age, len(found)), lead)
        for value in call.input.values():
            if isinstance(value, str) and len(value) > 200:
                found = list(lines(value))
                self._lines(number, step, found, weight(Importance.LOW, age, len(found)))

    def _lines(self, number: int, step: int, found: list[str], each: float, lead: str = "") -> None:
        ranked = nlargest(OF_A_RESULT, scored_lines(found, self._known, each))
        for rank, (score, line) in enumerate(ranked):
            # The best lines of an unresolved failure are separate facts; the others stay with their call.
            apart = lead != "" and rank < 2
            text = f"{lead}{found[line].strip()}" if apart else found[line].strip()
            worth = self._focused(text, (score + (3 if apart else 0)) / (1 + 0.08 * rank))
            self._found.append(Fact("trouble" if apart else "seen", number, self._place + line, text, worth, step))
        self._place += len(found)

    def _add(self, kind: FactKind, number: int, text: str, score: float) -> None:
        self._found.append(Fact(kind, number, self._place, text, self._focused(text, score)))
        self._place += 1

    def _focused(self, text: str, score: float) -> float:
        if not self._focus:
            return score
        low = text.casefold()
        return score + 5.0 * sum(word in low for word in self._focus)


def spoken(number: int, lost: str, place: int) -> list[Fact]:
    """Return the sentences of ``lost``, the part of the user's text in round ``number`` that the notes lack; of pasted
    text the most informative lines. ``place``: that of its first line."""
    shown = both_ends(lost, SCANNED)
    if shown.count("\n") > PASTED:
        found = list(lines(shown))
        scored = scored_lines(found, KnownWords(), weight(Importance.HIGH, 0.0, len(found)))
        best = nlargest(OF_A_RESULT, scored)
        return [Fact("seen", number, place + line, found[line].strip(), score) for score, line in best]
    said = [sentence.strip() for sentence in sentences(shown) if not _EMPTY.fullmatch(sentence)]
    each = weight(Importance.CRITICAL, 0.0, len(said))
    return [Fact("person", number, place, sentence, each + score) for sentence in said if (score := _worth(sentence))]


def _worth(sentence: str) -> float:
    return max(prose_score(sentence), line_score(sentence)) + (INSTRUCTING if is_instruction(sentence) else 0.0)


def newest(found: Sequence[Fact]) -> list[Fact]:
    """Return ``found`` without repetitions: the newest stays. A repetition with other figures weighs less."""
    kept: dict[tuple[str, str], Fact] = {}
    shapes: set[str] = set()
    for fact in reversed(found):
        key = ("step" if fact.kind == "step" else "", " ".join(fact.text.casefold().split()))
        if key in kept:
            continue
        if fact.kind in ("person", "said", "decision"):
            shape = masked(key[1])
            if shape in shapes:
                fact = replace(fact, score=fact.score * 0.3)
            shapes.add(shape)
        kept[key] = fact
    return list(kept.values())[::-1]


def paths(call: ToolUse) -> Iterator[str]:
    """Return the files in the arguments or the patch of a call."""
    for name, value in call.input.items():
        if not isinstance(value, str):
            continue
        if any(word in name.lower() for word in _PATHS) and 0 < len(value) <= 200 and "\n" not in value:
            yield value
        elif "\n" in value and ("*** " in value or "+++ " in value):
            yield from _PATCHED.findall(value)


def changes(call: ToolUse) -> bool:
    """Return True for a call whose name says that it writes to its files."""
    return any(word in call.name.lower() for word in _CHANGING)


def _acts(message: Message) -> bool:
    return bool(message.calls) or (message.role == "assistant" and _action(message.text) is not None)


def _action(text: str) -> re.Match[str] | None:
    return _DONE.search(text, max(0, len(text) - _END))


def _key(call: ToolUse) -> tuple[str, str]:
    words = target(call).split()
    return call.name, words[0] if words else ""


def _successes(messages: Sequence[Message]) -> dict[tuple[str, str], int]:
    """Return the last successful call of each kind, counted from 1."""
    found: dict[tuple[str, str], int] = {}
    number = 0
    for message, later in zip(messages, [*messages[1:], None], strict=True):
        outputs = {out.tool_use_id: out for out in later.blocks if isinstance(out, ToolOutput)} if later else {}
        for call in message.calls:
            number += 1
            output = outputs.get(call.id)
            if output is not None and not failed(output, call):
                found[_key(call)] = number
    return found
