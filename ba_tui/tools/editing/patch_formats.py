"""Reads patches: unified diffs as git, diff and models write them, and the form ``*** Begin Patch``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

from ba_tui.core.text.patterns import regex
from ba_tui.tools.editing.documents import line_end
from ba_tui.tools.failures import ToolFailure

Sign: TypeAlias = Literal[" ", "-", "+"]


@dataclass(slots=True)
class Hunk:
    """A hunk: ``lines`` with their signs; ``where`` is its line in the patch.

    Hints for its place: ``anchors``, lines before it, the outermost first; ``start``, its first line in the old file,
    from 1; ``at_end``. The last ``loose`` lines are blank and may only separate hunks. ``open_old`` and ``open_new``:
    the last line has no line end before, or after, the change.
    """

    where: int
    lines: list[tuple[Sign, str]] = field(default_factory=list[tuple[Sign, str]])
    anchors: tuple[str, ...] = ()
    start: int | None = None
    at_end: bool = False
    loose: int = 0
    open_old: bool = False
    open_new: bool = False
    returns: int = 0
    """Number of lines that end with a carriage return."""

    def put(self, line: str) -> bool:
        """Add a line of the patch; return False if it is not part of a hunk."""
        sign = line[:1]
        if sign == "\\":
            before = self.lines[-1][0] if self.lines else ""
            self.open_old = self.open_old or before in {" ", "-"}
            self.open_new = self.open_new or before in {" ", "+"}
            return True
        self.returns += line.endswith("\r")
        if line in {"", "\r"}:
            self.lines.append((" ", ""))
            self.loose += 1
            return True
        if sign not in {" ", "-", "+"}:
            return False
        self.lines.append((cast("Sign", sign), line[1:].removesuffix("\r")))
        self.loose = 0
        return True

    @property
    def windows(self) -> bool:
        """Whether all lines have ``\\r\\n``; the last line of a patch may have no line end."""
        return 0 < self.returns >= len(self.lines) - 1

    @property
    def old(self) -> list[str]:
        return [text for sign, text in self.lines if sign != "+"]

    @property
    def new(self) -> list[str]:
        return [text for sign, text in self.lines if sign != "-"]


@dataclass(slots=True)
class FilePatch:
    """The change of the file at ``path``; ``content`` of a new file; ``target``: the new path of a moved file.

    ``whole``: a deletion that shows the file's whole content.
    """

    action: Literal["add", "update", "delete"]
    path: str
    where: int
    target: str | None = None
    content: str = ""
    hunks: list[Hunk] = field(default_factory=list[Hunk])
    whole: bool = False


def refused(where: int, message: str, hint: str = "") -> ToolFailure:
    """Return the error for an invalid patch; ``where`` is the line in the patch."""
    return ToolFailure("invalid_parameters", f"Line {where} of the patch: {message}", hint)


# Unified diffs. The line counts of a hunk's header are used only if they are right.

_ESCAPE = regex(r'\\([0-7]{1,3}|[abtnvfr"\\])')
_LETTERS = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_NOTHING = "/dev/null"
_SIGNATURE = regex(r"\s*|-- ?\r?|\d+(\.\d+)+\S*\s*")
"""A blank line, or the signature of a mailed patch."""
_PREFIXES = (("a/", "b/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/"), ("o/", "w/"), ("c/", "o/"), ("1/", "2/"))
"""Prefixes that git writes before the two names of a file; a reversed diff swaps them."""
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
class _DiffSection:
    """The part of one file while it is read. ``old`` and ``new``: the names in its headers."""

    where: int
    old: str = ""
    new: str = ""
    git: str = ""
    """The path in ``diff --git`` if old and new are the same."""
    moved: list[str] = field(default_factory=list[str])
    mode: str = ""
    hunks: list[Hunk] = field(default_factory=list[Hunk])


def read_unified(lines: Sequence[str], first: int) -> list[FilePatch]:
    """Parse a unified diff. ``lines`` begin at line ``first`` of the patch. Raises ToolFailure."""
    sections: list[_DiffSection] = []
    at = 0
    while at < len(lines):
        line, where = lines[at], first + at
        here = sections[-1] if sections else None
        if line.startswith("diff --git "):
            sections.append(_DiffSection(where, git=_git_name(line)))
        elif _is_header(lines, at):
            if here is None or here.old or here.hunks:
                here = _DiffSection(where)
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


def _between(line: str, section: _DiffSection | None, where: int) -> None:
    """Read a line outside of hunks: git's headers of a file, or text to ignore."""
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
    """Return the hunk at ``at`` and its end: as counted in the header if that is the end of a hunk."""
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


def _patch(section: _DiffSection) -> FilePatch:
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
    """Return the names without git's prefixes. Letters other than a and b may be folders, so both names must then be
    the same file, or match ``git``, the file of the section."""
    for mine, theirs in (*_PREFIXES, *(pair[::-1] for pair in _PREFIXES)):
        if _prefixed(old, mine) and _prefixed(new, theirs):
            names = old.removeprefix(mine), new.removeprefix(theirs)
            told = {*names, git} - {_NOTHING, ""}
            if mine == "a/" or (len(told) == 1 and (git or _NOTHING not in names)):
                return names
    return old, new


def _prefixed(name: str, prefix: str) -> bool:
    return name == _NOTHING or name.startswith(prefix)


def _addition(path: str, section: _DiffSection) -> FilePatch:
    lines = [pair for hunk in section.hunks for pair in hunk.lines[: len(hunk.lines) - hunk.loose]]
    if any(sign != "+" for sign, _ in lines):
        raise refused(section.where, f"{path} is new, so every line of its hunk begins with +.")
    end = "\r\n" if section.hunks and all(hunk.windows for hunk in section.hunks) else "\n"
    text = "".join(f"{line}{end}" for _, line in lines)
    if any(hunk.open_new for hunk in section.hunks):
        text = text.removesuffix(end)
    return FilePatch("add", path, section.where, content=text)


def _name(text: str) -> str:
    """Return the path of a ``---`` or ``+++`` line, without the date."""
    text = text.rstrip("\r")
    if text.startswith('"'):
        return _unquoted(text.split("\t")[0])
    return text.split("\t")[0].rstrip()


def _unquoted(text: str) -> str:
    """Decode a path that git quoted, with bytes in octal."""
    if not (len(text) > 1 and text.startswith('"') and text.endswith('"')):
        return text

    def byte(match: re.Match[str]) -> str:
        code = match[1]
        return chr(_LETTERS[code] if code in _LETTERS else int(code, 8) & 255)

    quoted = text[1:-1].encode("utf-8").decode("latin-1")
    return _ESCAPE.sub(byte, quoted).encode("latin-1").decode("utf-8", "surrogateescape")


def _git_name(line: str) -> str:
    """Return ``x`` of ``diff --git a/x b/x``; empty if the two differ."""
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


BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_FILE = regex(r"\*\*\* (Add|Update|Delete) File:[ \t]*(.*\S)\s*")
_MOVE = regex(r"\*\*\* Move to:[ \t]*(.*\S)\s*")
_END_OF_FILE = "*** End of File"
_NUMBERS = regex(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ELLIPSIS = {"", "...", "…"}
_HEADERS = "*** Add File: PATH, *** Update File: PATH or *** Delete File: PATH"


def read_envelope(lines: Sequence[str], first: int) -> list[FilePatch]:
    """Parse the form ``*** Begin Patch``, which is line ``first`` of the patch. Raises ToolFailure."""
    last = len(lines)
    while last > 1 and not lines[last - 1].strip():
        last -= 1
    if lines[last - 1].strip() != _END:
        raise refused(first + last - 1, f"the patch does not end with {_END}; it may be cut off.", "Send it whole.")
    files: list[FilePatch] = []
    at = 1
    while at < last - 1:
        if not lines[at].strip():
            at += 1
            continue
        header = _FILE.fullmatch(lines[at].strip())
        if header is None:
            raise refused(first + at, f"expected {_HEADERS}, not {lines[at][:80]!r}.")
        end = at + 1
        # In an update, a line that begins with a space is context.
        padded = header[1] != "Update"
        while end < last - 1 and not _starts_file(lines[end].strip() if padded else lines[end]):
            end += 1
        files.append(_file(header, lines[at + 1 : end], first + at))
        at = end
    return files


def _starts_file(line: str) -> bool:
    return line.startswith("*** ") and not line.startswith((_END_OF_FILE, "*** Move to:"))


def _file(header: re.Match[str], body: Sequence[str], where: int) -> FilePatch:
    path = header[2]
    match header[1]:
        case "Add":
            return FilePatch("add", path, where, content=_content(body, where + 1))
        case "Delete":
            if any(line.strip() for line in body):
                raise refused(where + 1, "nothing may follow *** Delete File.")
            return FilePatch("delete", path, where)
        case _:
            return _update(path, body, where)


def _content(body: Sequence[str], where: int) -> str:
    """Return the content of a new file, which ends with a line end; an empty last line means that line end."""
    count = len(body)
    while count and not body[count - 1].strip():
        count -= 1
    for number, line in enumerate(body[:count], where):
        if not line.startswith("+"):
            raise refused(number, f"every line of a new file begins with +, not {line[:80]!r}.")
    text = "\n".join(line[1:] for line in body[:count])
    if not count or text.endswith("\n"):
        return text
    return f"{text}\n" if text.endswith("\r") else text + line_end(text)


def _update(path: str, body: Sequence[str], where: int) -> FilePatch:
    patch = FilePatch("update", path, where)
    at = 0
    if body and (move := _MOVE.fullmatch(body[0])):
        patch.target, at = move[1], 1
    hunk: Hunk | None = None
    for number, line in enumerate(body[at:], where + 1 + at):
        if line.startswith("@@"):
            if hunk is None or hunk.lines:
                hunk = _opened(patch, number)
            _head(hunk, line.rstrip("\r"))
        elif line.rstrip() == _END_OF_FILE and hunk and hunk.lines:
            hunk.at_end, hunk = True, None
        elif not line.strip() and (hunk is None or not hunk.lines):
            continue
        else:
            hunk = hunk or _opened(patch, number)
            if not hunk.put(line):
                raise refused(number, f"a line of a hunk begins with a space, - or +, not {line[:80]!r}.")
    for each in patch.hunks:
        if not each.lines:
            raise refused(each.where, "the hunk has no lines.")
    if not patch.hunks and not patch.target:
        raise refused(where, f"the update of {path} has no hunk.")
    return patch


def _opened(patch: FilePatch, number: int) -> Hunk:
    hunk = Hunk(number)
    patch.hunks.append(hunk)
    return hunk


def _head(hunk: Hunk, line: str) -> None:
    if numbers := _NUMBERS.match(line):
        hunk.start = int(numbers[1])
        return
    anchor = line[2:].removeprefix(" ").removesuffix("@@").rstrip()
    if anchor.strip() not in _ELLIPSIS:
        hunk.anchors = (*hunk.anchors, anchor)


_HEREDOC = regex(r"\s*(?:apply_patch\s+)?<<-?\s*(['\"]?)(\w+)\1\s*")
_FENCE = regex(r"\s*(`{3,}|~{3,})\s*\w*\s*")
_FORMS = "Give a unified diff (--- a/file, +++ b/file, @@), or *** Begin Patch … *** End Patch."


def read_patch(text: str) -> list[FilePatch]:
    """Return the files of a patch, in its order.

    Raises:
        ToolFailure: it is no patch, is cut off, or asks for what can't be done; says in which line.
    """
    lines, first = _unwrapped(text)
    if not lines:
        raise ToolFailure("invalid_parameters", "The patch is empty.", _FORMS)
    files = read_envelope(lines, first) if lines[0].strip() == BEGIN else read_unified(lines, first)
    if not files:
        raise ToolFailure("invalid_parameters", "The patch names no file.", _FORMS)
    return files


def _unwrapped(text: str) -> tuple[list[str], int]:
    """Return the lines without outer blank lines, code fence or here-document, and the number of the first."""
    lines = text.split("\n")
    start, end = 0, len(lines)
    if end and lines[-1] == "":
        end -= 1
    while True:
        while start < end and not lines[start].strip():
            start += 1
        last = end
        while last > start and not lines[last - 1].strip():
            last -= 1
        if last - start < 2:
            break
        opening, closing = lines[start], lines[last - 1].strip()
        fence, here = _FENCE.fullmatch(opening), _HEREDOC.fullmatch(opening)
        if not (fence and closing == fence[1]) and not (here and closing == here[2]):
            break
        start, end = start + 1, last - 1
    return lines[start:end], start + 1
