"""Reads unified diffs as git, diff and models write them: the counts of a hunk are used where they are right.

The ``*** Begin Patch`` form is patch_envelope.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ba_tui.core.text.patterns import regex
from ba_tui.tools.editing.patch_parts import FilePatch, Hunk, refused

_NUMBERS = regex(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = regex(r'\\([0-7]{1,3}|[abtnvfr"\\])')
_LETTERS = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_NOTHING = "/dev/null"
_SIGNATURE = regex(r"\s*|-- ?\r?|\d+(\.\d+)+\S*\s*")
"""Blank, or what ends a mailed patch."""
_PREFIXES = (("a/", "b/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/"), ("o/", "w/"), ("c/", "o/"), ("1/", "2/"))
"""What git writes before the two names of a file, by its settings; a reversed diff has them the other way round."""
_ASIDE = (
    "diff ",
    "Only in ",
    "index ",
    "similarity index ",
    "dissimilarity index ",
    "Index: ",
    "=====",
    "new file mode 100644",
)
_BEYOND = {
    "Binary files ": "binary files can't be patched.",
    "GIT binary patch": "binary files can't be patched.",
    "old mode ": "the mode of a file can't be patched; use the shell for that.",
    "new mode ": "the mode of a file can't be patched; use the shell for that.",
    "new file mode ": "only plain files (mode 100644) can be added; set the mode by the shell afterwards.",
    "copy from ": "copies can't be patched in; add the new file instead.",
    "copy to ": "copies can't be patched in; add the new file instead.",
}


@dataclass(slots=True)
class _Section:
    """One file's part while it is read. ``old`` and ``new`` as the headers name them."""

    where: int
    old: str = ""
    new: str = ""
    git: str = ""
    """The path in ``diff --git``, when old and new are the same."""
    moved: list[str] = field(default_factory=list[str])
    mode: str = ""
    hunks: list[Hunk] = field(default_factory=list[Hunk])


def read_unified(lines: Sequence[str], first: int) -> list[FilePatch]:
    """``lines`` begin at line ``first`` of the patch. Raises Failed."""
    sections: list[_Section] = []
    at = 0
    while at < len(lines):
        line, where = lines[at], first + at
        here = sections[-1] if sections else None
        if line.startswith("diff --git "):
            sections.append(_Section(where, git=_git_name(line)))
        elif _is_header(lines, at):
            if here is None or here.old or here.hunks:
                here = _Section(where)
                sections.append(here)
            here.old, here.new = _name(line[4:]), _name(lines[at + 1][4:])
            at += 1
        elif line.startswith("@@"):
            if here is None or not here.old:
                raise refused(where, "a hunk without the lines --- and +++ that name its file.")
            hunk, at = _hunk(lines, at, where)
            here.hunks.append(hunk)
            continue
        else:
            _between(line, here, where)
        at += 1
    return [_patch(section) for section in sections]


def _is_header(lines: Sequence[str], at: int) -> bool:
    return lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")


def _between(line: str, section: _Section | None, where: int) -> None:
    """A line outside of hunks: what git says of a file, or words that mean nothing."""
    for start, message in _BEYOND.items():
        if section and line.startswith(start) and not line.startswith(_ASIDE):
            raise refused(where, message)
    if section and line.startswith(("rename from ", "rename to ")):
        section.moved.append(_unquoted(line.split(" ", 2)[2].rstrip("\r")))
    elif section and line.startswith("deleted file mode "):
        section.mode = "deleted"
    elif section and line.startswith("new file mode "):
        section.mode = "new"
    elif section and (section.hunks or section.old) and not (line.startswith(_ASIDE) or _SIGNATURE.fullmatch(line)):
        raise refused(where, f"a line of a hunk begins with a space, - or +, not {line[:80]!r}.")


def _hunk(lines: Sequence[str], at: int, where: int) -> tuple[Hunk, int]:
    """The hunk that begins at ``at``, and where it ends: as its header counts if that leads to an end of a hunk."""
    hunk = Hunk(where)
    numbers = _NUMBERS.match(lines[at])
    if lines[at].startswith("@@@"):
        raise refused(where, "the diff of a merge can't be applied.")
    end = None
    if numbers:
        hunk.start = int(numbers[1])
        old, new = (1 if numbers[group] is None else int(numbers[group]) for group in (2, 4))
        end = _counted(lines, at + 1, old, new)
    if end is None:
        end = at + 1
        while end < len(lines) and not _closes(lines, end) and (not lines[end].strip() or lines[end][0] in " +-\\"):
            end += 1
    for line in lines[at + 1 : end]:
        hunk.put(line)
    if not hunk.lines:
        raise refused(where, "the hunk has no lines.")
    return hunk, end


def _counted(lines: Sequence[str], at: int, old: int, new: int) -> int | None:
    while old > 0 or new > 0:
        sign = (lines[at][:1] or " ") if at < len(lines) else ""
        match sign:
            case " " | "\r":
                old, new = old - 1, new - 1
            case "-":
                old -= 1
            case "+":
                new -= 1
            case "\\":
                pass
            case _:
                return None
        at += 1
    if at < len(lines) and lines[at].startswith("\\"):
        at += 1
    after = at
    while after < len(lines) and not lines[after].strip():
        after += 1
    return at if (old, new) == (0, 0) and (after == len(lines) or _closes(lines, after)) else None


def _closes(lines: Sequence[str], at: int) -> bool:
    line = lines[at]
    return (
        line.startswith(("@@", "diff ", "Index: ", "Only in ")) or line.rstrip("\r") == "-- " or _is_header(lines, at)
    )


def _patch(section: _Section) -> FilePatch:
    old, new = section.old, section.new
    if not old:
        if len(section.moved) == 2:
            old, new = section.moved
            return FilePatch("update", old, section.where, target=new)
        if section.git and section.mode:
            return FilePatch("delete" if section.mode == "deleted" else "add", section.git, section.where)
        raise refused(section.where, "nothing says what happens to the file.")
    if section.git not in {old, new}:
        old, new = _without_prefixes(old, new, section.git)
    if old == new == _NOTHING:
        raise refused(section.where, "the patch names no file.")
    if old == _NOTHING:
        return _addition(new, section)
    if not section.hunks and len(section.moved) != 2:
        raise refused(section.where, f"the change of {old} has no hunk.")
    if new == _NOTHING:
        return FilePatch("delete", old, section.where, hunks=section.hunks, whole=True)
    if len(section.moved) == 2:
        old, new = section.moved
    elif old != new:
        message = f"it names two files, {old} and {new}."
        raise refused(section.where, message, "Name the same file twice; for a move add 'rename from' and 'rename to'.")
    return FilePatch("update", old, section.where, target=new if old != new else None, hunks=section.hunks)


def _without_prefixes(old: str, new: str, git: str = "") -> tuple[str, str]:
    """The names without what git puts before them. Other letters than a and b could be folders: then both names must
    tell the same file, or the one that there is and ``git``, the file of the section."""
    for mine, theirs in (*_PREFIXES, *(pair[::-1] for pair in _PREFIXES)):
        if _prefixed(old, mine) and _prefixed(new, theirs):
            names = old.removeprefix(mine), new.removeprefix(theirs)
            told = {*names, git} - {_NOTHING, ""}
            if mine == "a/" or (len(told) == 1 and (git or _NOTHING not in names)):
                return names
    return old, new


def _prefixed(name: str, prefix: str) -> bool:
    return name == _NOTHING or name.startswith(prefix)


def _addition(path: str, section: _Section) -> FilePatch:
    lines = [pair for hunk in section.hunks for pair in hunk.lines[: len(hunk.lines) - hunk.loose]]
    if any(sign != "+" for sign, _ in lines):
        raise refused(section.where, f"{path} is new, so every line of its hunk begins with +.")
    end = "\r\n" if section.hunks and all(hunk.windows for hunk in section.hunks) else "\n"
    text = "".join(f"{line}{end}" for _, line in lines)
    if any(hunk.open_new for hunk in section.hunks):
        text = text.removesuffix(end)
    return FilePatch("add", path, section.where, content=text)


def _name(text: str) -> str:
    """The path of a ``---`` or ``+++`` line, without a date behind it."""
    text = text.rstrip("\r")
    if text.startswith('"'):
        return _unquoted(text.split("\t")[0])
    return text.split("\t")[0].rstrip()


def _unquoted(text: str) -> str:
    """A path as git quotes it, its bytes in octal."""
    if not (len(text) > 1 and text.startswith('"') and text.endswith('"')):
        return text

    def byte(match: re.Match[str]) -> str:
        code = match[1]
        return chr(_LETTERS[code] if code in _LETTERS else int(code, 8) & 255)

    quoted = text[1:-1].encode("utf-8").decode("latin-1")
    return _ESCAPE.sub(byte, quoted).encode("latin-1").decode("utf-8", "surrogateescape")


def _git_name(line: str) -> str:
    """``x`` of ``diff --git a/x b/x``; empty when the two differ."""
    rest = line.removeprefix("diff --git ").rstrip("\r\n ")
    if rest.startswith('"'):
        parts = re.fullmatch(r'("(?:[^"\\]|\\.)*") ("(?:[^"\\]|\\.)*")', rest)
        names = (_unquoted(parts[1]), _unquoted(parts[2])) if parts else ("", "")
    else:
        half = len(rest) // 2
        names = (rest[:half], rest[half + 1 :])
    if names[0] == names[1]:
        return names[0]
    old, new = _without_prefixes(*names)
    return old if old == new else ""
