"""What a glob pattern means: ``*`` and ``?`` within a name, ``**`` over folders, ``[ab]`` and ``{a,b}``.

Pure; walking folders is ignoring.py. No pattern takes more than polynomial time, whatever a model writes.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from ba_tui.tools.failed import Failed

MAX_ALTERNATIVES = 100


class Glob:
    """A pattern without ``/`` fits a name at any depth; one that ends in ``/`` fits folders, any other files.

    Raises:
        Failed: the pattern leaves the folder or says too many alternatives.
    """

    def __init__(self, pattern: str) -> None:
        if pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
            message = f"The pattern {pattern!r} leaves the folder."
            raise Failed("invalid_parameters", message, "Give a relative pattern, and the folder in path.")
        self._folder = pattern.endswith("/")
        texts = expanded(pattern.removeprefix("./").rstrip("/"))
        self._alternatives = [_parts(text) for text in texts]

    def fits(self, path: str, *, folder: bool) -> bool:
        """``path`` relative to the folder searched."""
        if folder is not self._folder:
            return False
        names = path.split("/")
        return any(_fits(names, parts) for parts in self._alternatives)


def expanded(pattern: str) -> list[str]:
    """The patterns that the braces in ``pattern`` stand for."""
    done: list[str] = []
    todo = [pattern]
    while todo:
        text = todo.pop()
        match = re.search(r"\{([^{}]*,[^{}]*)\}", text)
        if match is None:
            done.append(text)
        else:
            todo += [text[: match.start()] + choice + text[match.end() :] for choice in match[1].split(",")]
        if len(done) + len(todo) > MAX_ALTERNATIVES:
            raise Failed("invalid_parameters", f"The pattern has more than {MAX_ALTERNATIVES} alternatives.")
    return done


def _parts(text: str) -> list[re.Pattern[str] | None]:
    """One expression a name; None stands for any number of folders."""
    names = [name for name in text.split("/") if name]
    if len(names) == 1:
        names.insert(0, "**")
    if names and names[-1] == "**":
        names.append("*")
    parts: list[re.Pattern[str] | None] = []
    for name in names:
        if name != "**":
            parts.append(re.compile(fnmatch.translate(name)))
        elif not parts or parts[-1] is not None:
            parts.append(None)
    return parts


def _fits(names: Sequence[str], parts: Sequence[re.Pattern[str] | None]) -> bool:
    """Row by row: which beginnings of ``names`` the parts so far can cover."""
    reached = [True] + [False] * len(names)
    for part in parts:
        following = [False] * (len(names) + 1)
        for at in range(len(names) + 1):
            if part is None:
                following[at] = reached[at] or (at > 0 and following[at - 1])
            elif at > 0 and reached[at - 1]:
                following[at] = part.match(names[at - 1]) is not None
        if not any(following):
            return False
        reached = following
    return reached[-1]
