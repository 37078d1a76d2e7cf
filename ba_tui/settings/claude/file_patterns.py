"""Claude Code's patterns of files, which are those of .gitignore, as patterns of ba's rules.

``//x`` is an absolute path, ``~/x`` lies in the home folder, ``/x`` in the project, ``x`` in the working folder; a name
without a slash means files of that name in every folder, and a folder means all that is in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ba_tui.core.text.patterns import regex

LONGEST = 480
MOST_NAMES = 32
_SPACED = regex(r"\s*([*/])\s*")
_BRACES = regex(r"\{([^{}]*)\}")
_HOME = regex(r"\A\$(?:HOME\b|\{HOME\})")


class Inexact(ValueError):
    """Why a rule of Claude Code can't be said as a rule of ba."""


def file_patterns(text: str, base: Path, *, strict: bool) -> list[str]:
    """The patterns for ``text``; ``base`` is the folder that a leading slash means. For a ``strict`` rule they may be
    wider than it, also where it is written in a way that Claude Code does not take.

    Raises:
        Inexact: nothing of ba's says just that.
    """
    text = text.strip()
    if strict and not re.match(r"[A-Za-z]:", text):
        text = text.replace("\\", "/")
    if not text.isprintable() or not text or len(text) > LONGEST:
        raise Inexact("its pattern is empty, too long or not on one line")
    if text.startswith("!"):
        raise Inexact("ba has no patterns with ! in front")
    if "\\" in text or re.match(r"[A-Za-z]:", text):
        raise Inexact("ba has no patterns with a backslash or a drive")
    loose = list(dict.fromkeys((text, *(_HOME.sub("~", each) for each in _expanded(text)))))
    if not strict and loose != [text]:
        raise Inexact("Claude Code takes braces and variables literally, ba does not take them")
    if strict:
        loose += [squeezed for each in loose if (squeezed := _SPACED.sub(r"\1", each)) != each]
    return list(dict.fromkeys(pattern for each in loose for pattern in _patterns(each, base, strict)))


def literal(text: str) -> str:
    """``text`` as a pattern that fits only itself."""
    return re.sub(r"([*?\[])", r"[\1]", text)


def _patterns(text: str, base: Path, strict: bool) -> Iterator[str]:
    if text in {".", "./", "./**"}:
        yield "**"
        return
    yield from _with_all_below(_anchored(text, base, strict))
    if strict and text.startswith("/") and not text.startswith("//"):
        # Many people mean the whole path.
        yield from _with_all_below(text)


def _anchored(text: str, base: Path, strict: bool) -> str:
    if text.startswith("//"):
        return text[1:]
    if text.startswith("~"):
        return text
    if text.startswith("/"):
        return literal(str(base)) + text
    if text.startswith("../"):
        if not strict:
            raise Inexact("it is about files above the folder")
        return os.path.normpath(f"{literal(str(base))}/{text}")
    plain = text.removeprefix("./")
    everywhere = "/" not in plain.rstrip("/") and plain == text
    return f"**/{plain}" if everywhere and not plain.startswith("**") else plain


def _with_all_below(pattern: str) -> Iterator[str]:
    pattern = pattern.rstrip("/") or "/"
    if pattern.endswith("**"):
        yield pattern
        return
    yield pattern
    yield f"{pattern.rstrip('/')}/**"


def _expanded(text: str) -> list[str]:
    """Every reading of the braces in ``text``."""
    found = [text]
    while (at := next((each for each in found if _BRACES.search(each)), None)) and len(found) < MOST_NAMES:
        first = _BRACES.search(at)
        assert first is not None
        names = [at[: first.start()] + part.strip() + at[first.end() :] for part in first[1].split(",")]
        found = [other for each in found for other in (names if each == at else [each])]
    return found
