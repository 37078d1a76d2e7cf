"""Fetches, checks, installs, creates and removes skills. Runs nothing that a skill contains."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.processes.programs import BriefRun, run_briefly
from ba_tui.resources import exclusive, save_whole
from ba_tui.skills.catalog import head_of
from ba_tui.skills.content import PASSED_OVER
from ba_tui.skills.dependencies import RequirementsRefused, read_requirements
from ba_tui.skills.scripts import scripts_in
from ba_tui.skills.validator import MAX_NAME, SkillReport, check, id_of, skill_file

SUBFOLDERS = ("", "skills", ".claude/skills", ".agents/skills", ".ba/skills")
"""Folders with skills in a repository."""
MAX_FILES, MAX_BYTES, MAX_DEPTH = 2_000, 100_000_000, 16
CLONE_SECONDS = 180
PROTOCOLS = ("https", "http", "ssh", "file")
_URL = regex(rf"(?:{'|'.join(PROTOCOLS)})://[^\s]+|[\w.-]+@[\w.-]+:[^\s:][^\s]*")
_LOGIN = regex(r"//[^/@\s]*@")
_NAME = regex(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_STAGING = regex(r"\.new-[a-z0-9_]{8}")

SKELETON = """\
---
name: {name}
description: What this skill helps with, and when to use it. Write down the words that people use for such work.
---

# {title}

## When to use it

Say which tasks this is for, and which it is not for.

## Steps

1. Look at what is there before changing anything.
2. Do the work, one checked step at a time.
3. Check the result, and say how it was checked.

## Pitfalls

- What goes wrong most often, and how to notice.

Longer material belongs into files beside this one, such as `references/details.md`. Programs belong into `scripts/`:
they read JSON on standard input and print their result.
"""


@frozen
class SkillCandidate:
    """A skill to install, in a temporary ``folder`` with the skill's final name.

    ``trouble``: why it can't be used. ``needs``: the lines of its requirements.txt.
    """

    id: str
    folder: Path
    report: SkillReport
    trouble: str = ""
    scripts: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    files: int = 0


def fetch(source: str, into: Path) -> Path:
    """Return the folder ``source``; for a git repository, a copy of its newest commit in ``into``. Blocks.

    Raises:
        UsageError: it is neither, or can't be fetched.
    """
    local = Path(source).expanduser()
    if local.is_file() and local.name.lower() == "skill.md":
        local = local.parent
    if local.is_dir():
        return _cloned(str(local.resolve()), into) if _bare(local) else local
    if _URL.fullmatch(source):
        return _cloned(source, into)
    hint = f"Name a folder with a SKILL.md, or a git repository ({', '.join(PROTOCOLS)}, or user@host:path)."
    raise UsageError(f"There is no folder {source}, and it is not the address of a repository.", hint)


def skills_in(folder: Path) -> Sequence[Path]:
    """Return the folders of the skills in ``folder``, which may be one itself. Reads the disk."""
    if skill_file(folder):
        return [folder]
    found: dict[str, Path] = {}
    for name in SUBFOLDERS:
        try:
            inside = sorted((folder / name).iterdir())
        except OSError:
            continue
        for each in inside:
            if not each.name.startswith(".") and each.is_dir() and skill_file(each):
                found.setdefault(os.path.realpath(each), each)
    return list(found.values())


def name_of(folder: Path) -> str:
    """Return the name of the skill in ``folder``. Reads the disk."""
    return id_of(_head(folder)[0])


def staged_copy(folder: Path, into: Path) -> SkillCandidate:
    """Copy the skill in ``folder`` into ``into`` and check it. Reads and writes the disk.

    Raises:
        UsageError: a file can't be copied.
    """
    name, trouble = _head(folder)
    id = id_of(name)
    copy = into / id
    try:
        count = _copied(folder, copy)
    except OSError as error:
        raise UsageError(f"{folder} can't be copied: {error.strerror or error}.", "Check it and try again.") from error
    try:
        wanted = read_requirements(id, copy)
    except RequirementsRefused as error:
        trouble = trouble or str(error).rstrip(".")
        wanted = None
    return SkillCandidate(id, copy, check(copy), trouble, scripts_in(copy), wanted.lines if wanted else (), count)


def install_skill(candidate: SkillCandidate, root: Path) -> Path:
    """Install a skill in the folder ``root``, replacing one of the same name; return its folder. Writes the disk.

    Raises:
        StorageError: it can't be written; the old skill is unchanged.
    """
    place = root / candidate.id
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o755)
        with exclusive(root), _staging(root) as near:
            new, old = near / "new", near / "before" / candidate.id
            shutil.copytree(candidate.folder, new, symlinks=True)
            there = os.path.lexists(place)
            if there:
                old.parent.mkdir()
                place.rename(old)
            try:
                new.rename(place)
            except OSError:
                if there:
                    old.rename(place)
                raise
    except OSError as error:
        raise StorageError(
            f"{place} can't be written: {error.strerror or error}.", "Check the folder's permissions."
        ) from error
    return place


@contextmanager
def _staging(root: Path) -> Generator[Path]:
    """Yield a temporary folder in ``root``, which is locked; one rename then installs the skill. First remove the
    folders of killed installations and restore the skills that they had set aside."""
    for left in root.iterdir():
        if _STAGING.fullmatch(left.name) and {each.name for each in left.iterdir()} <= {"new", "before"}:
            for old in left.glob("before/*"):
                if not os.path.lexists(root / old.name):
                    old.rename(root / old.name)
            shutil.rmtree(left)
    # Folders with a dot are no skills.
    with tempfile.TemporaryDirectory(prefix=".new-", dir=root) as near:
        yield Path(near)


def create(name: str, root: Path) -> Path:
    """Create a skill in the folder ``root`` and return its SKILL.md, to be filled in. Writes the disk.

    Raises:
        UsageError: the name is invalid or taken. StorageError: it can't be written.
    """
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise UsageError(
            f"{name!r} can't be the name of a skill.", "Such as sales-report: a-z, 0-9 and single hyphens."
        )
    place = root / name
    if os.path.lexists(place):
        raise UsageError(f"{place} is there already.", "Choose another name.")
    title = name.replace("-", " ").capitalize()
    save_whole(place / "SKILL.md", SKELETON.format(name=name, title=title), mode=0o644)
    return place / "SKILL.md"


def remove(folder: Path) -> None:
    """Remove a skill, or only the link to one. Raises StorageError."""
    try:
        if folder.is_symlink():
            folder.unlink()
        else:
            shutil.rmtree(folder)
    except OSError as error:
        raise StorageError(
            f"{folder} can't be removed: {error.strerror or error}.", "Check the folder's permissions."
        ) from error


def _head(folder: Path) -> tuple[str, str]:
    """Return the name of a skill, and why it can't be used; empty if it can."""
    own = Path(os.path.abspath(folder)).name  # noqa: PTH100 - its name counts as it is written, not where a link leads
    file = skill_file(folder)
    if file is None:
        return own, "there is no file SKILL.md"
    head = head_of(file, own)
    return head.name, head.trouble


def _copied(source: Path, target: Path) -> int:
    """Copy the files of a skill; return their number."""
    real, left = Path(os.path.realpath(source)), [MAX_FILES, MAX_BYTES]
    todo = [(real, target, 0)]
    while todo:
        folder, into, depth = todo.pop()
        into.mkdir(parents=True)
        for entry in sorted(folder.iterdir()):
            if entry.name in PASSED_OVER:
                continue
            shown = entry.relative_to(real)
            if entry.is_symlink() and not Path(os.path.realpath(entry)).is_relative_to(real):
                raise UsageError(f"{shown} is a link that points outside the skill.", "Replace the link by the file.")
            about = entry.stat()
            if stat.S_ISDIR(about.st_mode) and not entry.is_symlink() and depth < MAX_DEPTH:
                todo.append((entry, into / entry.name, depth + 1))
                continue
            if not stat.S_ISREG(about.st_mode):
                raise UsageError(f"{shown} is neither a file nor a folder of the skill.", "Remove it.")
            left[0] -= 1
            left[1] -= about.st_size
            if min(left) < 0:
                most = f"{MAX_FILES:,} files or {MAX_BYTES // 1_000_000} MB"
                raise UsageError(f"{source} holds more than {most}.", "Check that this is the right folder.")
            shutil.copyfile(entry, into / entry.name)
            (into / entry.name).chmod(0o755 if about.st_mode & 0o100 else 0o644)
    return MAX_FILES - left[0]


def _bare(folder: Path) -> bool:
    """Return whether ``folder`` is a bare repository."""
    return not skill_file(folder) and all((folder / name).exists() for name in ("HEAD", "objects", "refs"))


def _cloned(address: str, into: Path) -> Path:
    git = shutil.which("git")
    if git is None:
        raise UsageError("git is not installed.", "Install it, or download the skill and name its folder.")
    name = re.sub(r"\.git$", "", address.rstrip("/").replace(":", "/").rsplit("/", 1)[-1]) or "skill"
    target = into / name.lstrip(".-")
    allowed = [word for protocol in PROTOCOLS for word in ("-c", f"protocol.{protocol}.allow=always")]
    # No hooks, templates, submodules and other transports: nothing in the repository can run.
    safe = ["-c", "protocol.allow=never", *allowed, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]
    clone = ["clone", "--quiet", "--depth=1", "--no-tags", "--single-branch", "--no-recurse-submodules", "--template="]
    if "://" not in address and "@" not in address:
        # git copies the whole history of a path, but not of an address.
        address = f"file://{address}"
    shown = _LOGIN.sub("//", address)
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"}
    for variable in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_TEMPLATE_DIR"):
        environment.pop(variable, None)
    argv = [git, *safe, *clone, "--", address, str(target)]
    done = run_briefly(BriefRun(argv, CLONE_SECONDS, environment=environment))
    if done.trouble == "timeout":
        raise UsageError(f"{shown} took longer than {CLONE_SECONDS} s to fetch.", "Try again, or name a folder.")
    if done.code != 0:
        lines = [line for line in done.errors.decode("utf-8", "replace").splitlines() if line.strip()]
        why = _LOGIN.sub("//", lines[-1]).removeprefix("fatal: ") if lines else f"exit code {done.code}"
        raise UsageError(f"{shown} can't be fetched: {why.rstrip('.')}.", "Check the address and the network.")
    return target
