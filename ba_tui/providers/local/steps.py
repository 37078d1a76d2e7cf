"""Whether a small model's next reply has to be a call: it answers from what it was shown or made up if it may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ba_tui.core.messages import Message, ToolOutput
from ba_tui.core.text.patterns import regex

READING, SHELL = "read_file", "shell"
MOST_LINES = 200
"""Lines of files that a grammar offers for replacement."""
_NUMBERED = regex(r"(?m)^ *\d+\t(.*)$")
TRIES = 2
"""Failed calls in a row after which the model may give up."""
_NAMES_SOMETHING = regex(
    r"""(?ix)
    (?<![\w@/.]) (?: [\w-]{2,}\.[a-z]\w{0,5} | [\w-]\.[a-z]\w{1,5} ) \b (?!\.?\w)   # notes.txt, a.py; not e.g.
    | (?<![\w/:])[\w.~-]*/[\w./-]+                        # src/, ./run
    | `[^`\n]+`
    | \d\s*[-+*/^×÷%]\s*\d                                # a sum
    | \b(?:files?|folders?|director(?:y|ies)|workspace|repo(?:sitory)?|script|command|run|execute)\b
    """
)


def call_needed(messages: Sequence[Message]) -> bool:
    """True before the first call for a prompt that names a file, a command or a sum, and after a call that failed."""
    failed = 0
    for message in reversed(messages):
        outputs = [block for block in message.blocks if isinstance(block, ToolOutput)]
        if outputs:
            if not outputs[-1].is_error:
                return failed > 0
            failed += 1
            if failed >= TRIES:
                return False
        elif message.role == "user" and not message.hidden and (asked := message.own_text.strip()):
            return failed > 0 or _NAMES_SOMETHING.search(asked) is not None
    return False


def answer_due(messages: Sequence[Message]) -> bool:
    """True after the same call was made twice in a row and succeeded both times: the third would stop the turn."""
    calls: list[tuple[str, object]] = []
    for message in reversed(messages):
        outputs = [block for block in message.blocks if isinstance(block, ToolOutput)]
        if message.calls:
            calls += [(call.name, call.input) for call in reversed(message.calls)]
        elif not outputs or any(output.is_error for output in outputs):
            return False
        if len(calls) > 1:
            return calls[0] == calls[1]
    return False


def read_lines(messages: Sequence[Message]) -> Mapping[str, Sequence[str]]:
    """The lines of each file that was read and not called for by another tool since; those that stand there once and
    are not blank. Files with more lines than the grammar should hold are left out, and then all are."""
    calls = {call.id: call for message in messages for call in message.calls}
    lines: dict[str, Sequence[str]] = {}
    for message in messages:
        for output in message.blocks:
            if not isinstance(output, ToolOutput) or output.is_error or not (call := calls.get(output.tool_use_id)):
                continue
            path = str(call.input.get("path", ""))
            if call.name == READING:
                said = Counter(_NUMBERED.findall(output.content))
                lines[path] = tuple(line for line, count in said.items() if count == 1 and line.strip())
            elif path in lines:
                del lines[path]
            elif call.name == SHELL:
                # It may have changed any of them.
                lines.clear()
    return {path: said for path, said in lines.items() if said} if sum(map(len, lines.values())) <= MOST_LINES else {}


def notes_first(messages: Sequence[Message]) -> Sequence[Message]:
    """``messages`` with ba's notes before the prompt that they came with: a small model minds what it read last."""
    ordered: list[Message] = []
    for message in messages:
        at = len(ordered)
        if message.hidden and message.role == "user" and at and _is_prompt(ordered[-1]):
            at -= 1
        ordered.insert(at, message)
    return ordered


def _is_prompt(message: Message) -> bool:
    return (
        message.role == "user"
        and not message.hidden
        and not any(isinstance(block, ToolOutput) for block in message.blocks)
    )
