"""Whether a small model's next reply has to be a call: it answers from what it was shown or made up if it may."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.messages import Message, ToolOutput
from ba_tui.core.text.patterns import regex

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
