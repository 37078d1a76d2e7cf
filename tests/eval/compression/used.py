"""The facts of a conversation that its later part uses, found by comparing the two: nobody labels them by hand.

The expressions here are other ones than those of the compression, on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ba_tui.core.messages import Message
from tests.eval.compression.measure import said
from tests.eval.compression.stories import Label, Story

USED_KINDS = ("path", "name", "figure", "repeated figure", "error")
BEGINNINGS = (0.4, 0.6, 0.8)
"""The parts of a conversation after which it is compressed; what follows says what was needed."""
LEAST_MESSAGES = 6
_TOKEN = re.compile(r"[\w./\\@~+-]+")
_PATH = re.compile(r"(?:[\w.@~+-]*/)+[\w.@+-]*\w|[\w-]+\.[a-zA-Z][a-zA-Z0-9]{0,4}")
_NAME = re.compile(r"[A-Za-z]+(?:_\w+)+|_+[a-z]\w{3,}|[a-z]+[A-Z]\w+|[A-Z][a-z]+(?:[A-Z]\w*)+|[A-Z]+-\d+")
_FIGURE = re.compile(r"\d+(?:[.,]\d+)+|\d{3,}")
_ERROR = re.compile(r"\b\w*(?:Error|Exception)\b|\b(?:error|fatal|failed|FAILED)\b:?")


def facts_used(messages: Sequence[Message], name: str, beginnings: Sequence[float] = BEGINNINGS) -> Iterator[Story]:
    """``messages`` cut after each of ``beginnings``: what came before, labelled with what the agent wrote again
    afterwards, and with the error lines that came up again."""
    for beginning in beginnings:
        place = int(len(messages) * beginning)
        while place < len(messages) and messages[place].role != "assistant":
            place += 1
        if place < LEAST_MESSAGES or len(messages) - place < 2:
            continue
        before, after = messages[:place], messages[place:]
        if labels := list(_labels(before, after)):
            yield Story(f"{name} {beginning:.0%}", list(before), labels)


def _labels(before: Sequence[Message], after: Sequence[Message]) -> Iterator[Label]:
    known = [set(_tokens(said(message))) for message in before]
    everything = set[str]().union(*known)
    for token in sorted(set(_tokens("\n".join(map(_wrote, after)))) & everything):
        often = sum(token in tokens for tokens in known)
        if kind := _kind(token, often):
            yield Label(kind, "", token, 0)
    lines = {line for message in before for line in _errors(said(message))}
    for line in sorted(lines & {line for message in after for line in _errors(said(message))}):
        yield Label("error", "", line, 0)


def _wrote(message: Message) -> str:
    """What the agent wrote, in words and in calls: not what a tool printed, which some agents read as a user's text."""
    if message.role != "assistant":
        return ""
    calls = [str(value) for call in message.calls for value in call.input.values()]
    return "\n".join([message.text, *calls])


def _tokens(text: str) -> Iterator[str]:
    return (token for found in _TOKEN.findall(text) if len(token := found.strip("./\\@+-")) > 2)


def _kind(token: str, often: int) -> str | None:
    if _FIGURE.fullmatch(token):
        return "repeated figure" if often > 1 else "figure"
    if _PATH.fullmatch(token) and not token.replace(".", "").isdigit():
        return "path"
    return "name" if _NAME.fullmatch(token) else None


def _errors(text: str) -> Iterator[str]:
    return (line for raw in text.splitlines() if 15 < len(line := raw.strip()) < 200 and _ERROR.search(line))
