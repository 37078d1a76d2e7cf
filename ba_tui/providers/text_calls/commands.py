"""Replies that hold one command instead of a call: in a fenced block, or between ``<command>`` tags.

Only for models that were asked for that: to all others a block of code is an answer.
"""

from __future__ import annotations

from ba_tui.core.text.patterns import regex
from ba_tui.providers.text_calls.fences import fences
from ba_tui.providers.text_calls.known import Known, Written
from ba_tui.providers.text_calls.reading import Reading

PARAMETER = "command"
COMMAND = "<command>"
SHELL = frozenset(("", "bash", "sh", "shell", "console", "zsh"))
_TAG = regex(rf"(?s){COMMAND}\n?(.*?)\n?</command>")
SEVERAL = "There is more than one command in your answer."


def command_tool(known: Known) -> str:
    """The tool that runs a command: the one whose only required parameter has that name. Empty when there is none."""
    return next((name for name in known.schemas if known.parameter(name) == PARAMETER), "")


def read_command(text: str, known: Known) -> Reading:
    """The one command of a reply and the words before it; a reply without one is an answer."""
    found = [(fence.start, text[fence.inner : fence.inner_end]) for fence in fences(text) if fence.label in SHELL]
    found += [(tag.start(), tag[1]) for tag in _TAG.finditer(text)]
    if not found:
        return Reading(text)
    start, command = found[0]
    problem = SEVERAL if len(found) > 1 else ""
    name = PARAMETER if known.open else command_tool(known)
    call = Written(name, {PARAMETER: command.removesuffix("\n")}, problem, text[start:][:2_000])
    return Reading(text[:start].strip(), (call,), form="block")
