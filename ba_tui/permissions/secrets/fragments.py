"""Parts of secrets in a part of a text: a line from the middle of a private key does not look like one by itself.

Pure. Secrets that stand in the part as a whole are left to whoever looks at results.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from ba_tui.core.text.patterns import regex
from ba_tui.permissions.secrets.scanner import find

AROUND = 64_000
"""Characters before and after a part in which a secret may begin and end."""
NEAR = 400
"""The same in lines."""
LEAST = 6
"""Characters of a secret of which fewer tell nothing."""
_LONG = regex(r"PRIVATE KEY|Private-Lines|LS0tLS1CRUdJTiB")
_ARMOUR = regex(r"-----[A-Z ]{1,60}-----")
"""What begins and ends a key, and says nothing of it."""


def has_long_secrets(text: str) -> bool:
    """Whether secrets of several lines may stand in ``text``: few kinds have them."""
    return bool(_LONG.search(text))


def without_fragments(part: str, whole: str) -> tuple[str, tuple[str, ...]]:
    """``part`` of ``whole`` with marks in place of what it holds of secrets that do not stand in it from beginning to
    end; and their kinds."""
    kinds: dict[str, None] = {}
    for secret in find(whole):
        text = whole[secret.start : secret.end]
        if text in part:
            continue
        for piece in _pieces(text, part):
            part = part.replace(piece, f"[secret: {secret.kind}]")
            kinds[secret.kind] = None
    return part, tuple(kinds)


def lines_without_fragments(lines: Sequence[str], whole: str) -> tuple[list[str], tuple[str, ...]]:
    """The same for lines that follow each other; they stay as many."""
    text, kinds = without_fragments("\n".join(lines), whole)
    return (text.split("\n") if kinds else list(lines)), kinds


def _pieces(secret: str, part: str) -> Sequence[str]:
    """What of the lines of ``secret`` stands in ``part``: whole lines, and those that are cut at one end or at both."""
    lines = [line for each in secret.splitlines() if (line := each.strip()) and not _ARMOUR.fullmatch(line)]
    body = "\n".join(lines)
    found = [line for each in part.splitlines() if len(line := each.strip()) >= LEAST and line in body]
    for line in lines:
        if line in part:
            found += [line] if len(line) >= LEAST else []
            continue
        for piece in (_begun(line, part), _begun(line[::-1], part[::-1])[::-1]):
            found += [piece] if len(piece) >= LEAST else []
    return sorted(found, key=len, reverse=True)


def _begun(line: str, part: str) -> str:
    """The longest beginning of ``line`` that stands in ``part``."""
    at, longest = part.find(line[:LEAST]), 0
    while at >= 0 and line:
        alike = takewhile(lambda letters: letters[0] == letters[1], zip(line, part[at:], strict=False))
        longest = max(longest, sum(1 for _ in alike))
        at = part.find(line[:LEAST], at + 1)
    return line[:longest]
