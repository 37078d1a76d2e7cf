"""Brings a change that was made to an older state of a file into its present one, with ``git merge-file``."""

from __future__ import annotations

import os
import shutil

from ba_tui.core.values import frozen
from ba_tui.features.agents.copies.copies import CopyChange
from ba_tui.processes.brief import BriefRun, run_briefly
from ba_tui.processes.scratch import scratch
from ba_tui.tools.failed import Failed

SECONDS = 20.0


@frozen
class Merged:
    """What the file is to hold, or why the two changes don't fit. ``text``: both, where they meet, with the marks of
    git (``<<<<<<<``)."""

    data: bytes | None = None
    why: str = ""
    text: str = ""


def merged(change: CopyChange, now: bytes | None) -> Merged:
    """Merge ``change`` into ``now``, what the project's file holds. Blocks. Raises Failed when git can't run."""
    if now in (change.before, change.after):
        return Merged(change.after)
    if now is None:
        return Merged(why="the project has deleted it")
    if change.after is None:
        return Merged(why="it was deleted in the copy, and changed in the project")
    if change.before is None:
        return Merged(why="both made a file of this name")
    if change.binary:
        return Merged(why="it is no text, and the project's has changed")
    return _merged(now, change.before, change.after)


def _merged(now: bytes, before: bytes, after: bytes) -> Merged:
    git = shutil.which("git")
    if git is None:
        raise Failed("dependency_error", "Changes can't be merged: git is not installed.", "Install git.")
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1"}
    with scratch("merge") as folder:
        for file, data in (("project", now), ("before", before), ("copy", after)):
            (folder / file).write_bytes(data)
        argv = [git, "merge-file", "-p", "--diff3", "project", "before", "copy"]
        environment |= {
            "HOME": str(folder),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CEILING_DIRECTORIES": str(folder.parent),
        }
        done = run_briefly(BriefRun(argv, SECONDS, folder, environment))
    # The number of conflicts, at most 127; what is more is a failure.
    if done.code is None or done.code > 127:
        raise Failed("execution_error", "git could not merge the changes.", "Make them with edit_file instead.")
    if done.code:
        return Merged(why="the project changed the same lines", text=done.output.decode("utf-8", "replace"))
    return Merged(done.output)
