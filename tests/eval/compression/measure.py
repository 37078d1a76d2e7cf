"""How many labelled facts a shortened conversation still holds, and the two plain ways it is compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ba_tui.context.compression.rounds import Keep
from ba_tui.context.compression.strategies import extract, truncate
from ba_tui.core.messages import Message, Text, Thinking, ToolOutput, ToolUse
from tests.eval.compression.stories import Label, Story

BUDGETS = (0.5, 0.25, 0.1)
Way = Callable[[Sequence[Message], int], Sequence[Message]]


def said(message: Message) -> str:
    parts: list[str] = []
    for block in message.blocks:
        match block:
            case Text(text=text) | Thinking(thinking=text) | ToolOutput(content=text):
                parts.append(text)
            case ToolUse(name=name, input=given):
                parts.append(f"{name} {given}")
            case _:
                pass
    return "\n".join(parts)


def tokens(text: str) -> int:
    """A fair estimate for both scripts: four characters, or one and a half where each is a word."""
    wide = sum(character > "\u2e7f" for character in text) if not text.isascii() else 0
    return int((len(text) - wide) / 4 + wide / 1.5)


class Counted:
    """Tokens of messages, each counted once."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Message, int]] = {}

    def __call__(self, messages: Sequence[Message]) -> int:
        return sum(map(self._one, messages))

    def _one(self, message: Message) -> int:
        known = self._known.get(message.id) if message.id else None
        if known is None or known[0] is not message:
            known = (message, 4 + tokens(said(message)))
            self._known[message.id] = known
        return known[1]


def plain_truncation(messages: Sequence[Message], room: int) -> Sequence[Message]:
    """The newest messages that have room."""
    count, kept = Counted(), list[Message]()
    for message in reversed(messages):
        room -= count([message])
        if room < 0:
            break
        kept.append(message)
    return kept[::-1]


def first_and_last(messages: Sequence[Message], room: int) -> Sequence[Message]:
    """The oldest messages in a fifth of the room, or the first alone, and the newest in the rest."""
    count, head = Counted(), list[Message]()
    left = room // 5
    for message in messages:
        left -= count([message])
        if left < 0 and head:
            break
        head.append(message)
    return [*head, *plain_truncation(messages[len(head) :], room - count(head))]


WAYS: dict[str, Way] = {
    "plain truncation": plain_truncation,
    "first + last": first_and_last,
    "TRUNCATE": lambda messages, room: truncate(messages, room, Counted()).messages,
    "EXTRACT": lambda messages, room: extract(messages, room, Counted()).messages,
    "EXTRACT twice": lambda messages, room: _twice(messages, room),
}


def _twice(messages: Sequence[Message], room: int) -> Sequence[Message]:
    """Compressed once when six tenths of it were said, and again at the end."""
    cut = next(place for place in range(len(messages) * 6 // 10, len(messages)) if messages[place].role == "assistant")
    prompts = [message.id for message in messages if message.role == "user" and message.origin == "user"]
    keep = Keep(starts={id: number for number, id in enumerate(prompts, 1)})
    first = extract(messages[:cut], room, Counted(), keep).messages
    return extract([*first, *messages[cut:]], room, Counted(), keep).messages


def holds(text: str, label: Label) -> bool:
    return " ".join(label.answer.casefold().split()) in text


def folded(messages: Iterable[Message]) -> str:
    return " ".join("\n".join(map(said, messages)).casefold().split())


@dataclass
class Score:
    kept: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    over: int = 0

    @property
    def share(self) -> float:
        return sum(self.kept.values()) / max(1, sum(self.asked.values()))

    def of(self, kind: str) -> float:
        return self.kept[kind] / max(1, self.asked[kind])

    def add(self, story: Story, way: Way, budget: float) -> None:
        total = Counted()(story.messages)
        result = way(story.messages, int(total * budget))
        self.over += Counted()(result) > int(total * budget)
        text = folded(result)
        for label in story.labels:
            self.asked[label.kind] += 1
            if holds(text, label):
                self.kept[label.kind] += 1
            else:
                self.lost.append(f"{story.name}, round {label.round}, {label.kind}: {label.answer}")
