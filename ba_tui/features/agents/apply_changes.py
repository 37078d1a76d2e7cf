"""The tool apply_changes: merges an isolated agent's changes into the project, all of them or none.

It names the files of the project, so rules, plan mode, hooks and checkpoints judge it like any other change.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import Any, cast

from ba_tui.core.calls import Commit, commit_whole
from ba_tui.core.errors import UsageError
from ba_tui.core.results import Diff, Diffs, Display, ToolResult
from ba_tui.core.text.wording import count
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.features.agents.copies import Copies, CopyChange, Stamp
from ba_tui.permissions.paths import Workspace
from ba_tui.processes.programs import BriefRun, run_briefly
from ba_tui.processes.scratch import scratch
from ba_tui.tools.definitions import Definition
from ba_tui.tools.editing.disk import read_bytes
from ba_tui.tools.editing.documents import binary_kind, detect, plain_lines
from ba_tui.tools.editing.edits import PlannedChange
from ba_tui.tools.editing.transaction import FileStep, commit
from ba_tui.tools.failures import ToolFailure
from ba_tui.write_ahead import WriteAhead

SECONDS = 20.0


@frozen
class MergeResult:
    """The new content of a file, or why the changes conflict. ``text``: conflicting changes with git's markers
    (``<<<<<<<``).
    """

    data: bytes | None = None
    why: str = ""
    text: str = ""


def merged(change: CopyChange, now: bytes | None) -> MergeResult:
    """Merge ``change`` into ``now``, the project's file. Blocks. Raises ToolFailure if git can't run."""
    if now in (change.before, change.after):
        return MergeResult(change.after)
    if now is None:
        return MergeResult(why="the project has deleted it")
    if change.after is None:
        return MergeResult(why="it was deleted in the copy, and changed in the project")
    if change.before is None:
        return MergeResult(why="both made a file of this name")
    if change.binary:
        return MergeResult(why="it is no text, and the project's has changed")
    return _merged(now, change.before, change.after)


def _merged(now: bytes, before: bytes, after: bytes) -> MergeResult:
    git = shutil.which("git")
    if git is None:
        raise ToolFailure("dependency_error", "Changes can't be merged: git is not installed.", "Install git.")
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
    # The exit code is the number of conflicts, at most 127; higher codes are errors.
    if done.code is None or done.code > 127:
        raise ToolFailure("execution_error", "git could not merge the changes.", "Make them with edit_file instead.")
    if done.code:
        return MergeResult(why="the project changed the same lines", text=done.output.decode("utf-8", "replace"))
    return MergeResult(done.output)


NAME = "apply_changes"
DELETED = " (deleted)"
EDITORS = ("edit_file", "write_file", "apply_patch")
MARKED = "<<<<<<<"
MOST_SHOWN = 4_000
"""Maximum characters of conflicting lines that are shown."""
MOST_BYTES = 60_000_000
"""Maximum bytes of all files together: they stay in memory until the last is checked."""
LISTED = 20
MOST_JUDGED = 100


@frozen
class _Step:
    """One file: its planned change, and the agent's change."""

    step: FileStep
    change: CopyChange

    @property
    def plan(self) -> PlannedChange:
        step = self.step
        old, new = _words(step.before), _words(step.after)
        return PlannedChange(step.path, step.shown, step.before, step.after or b"", old, new)

    def diff(self) -> Diff:
        diff, step = self.plan.diff(), self.step
        return Diff(f"{step.shown}{DELETED}", diff.before, "") if step.after is None else diff

    def done(self) -> str:
        step = self.step
        what = "Deleted" if step.after is None else "Created" if step.before is None else "Changed"
        more = ", merged with the project's own changes" if step.after != self.change.after else ""
        return f"{what} {step.shown} ({self.plan.size()} lines){more}."


@frozen
class ChangeApplier:
    """Applies changes from the ``copies`` of the session to its ``workspace``; with the folder of its write-ahead
    lists, and a check whether an agent is running.
    """

    copies: Copies
    workspace: Workspace
    ahead: WriteAhead
    working: Callable[[str], bool]
    judged: dict[str, dict[str, Stamp | None]] = field(default_factory=dict[str, "dict[str, Stamp | None]"])
    """File states at the last check, by arguments."""
    shown: dict[str, str] = field(default_factory=dict[str, str])
    """Digests of the changes that the user was shown, by arguments; empty if they could not be shown."""

    def named(self, args: Mapping[str, Any], *, anew: bool = False) -> dict[str, Stamp | None]:
        """Return the changed paths that a call covers, relative to the project, with the state of each."""
        wanted = args.get("paths") or ()
        found = self.copies.changed(self.agent(args), anew=anew)
        if not wanted:
            return found
        texts = cast("list[object]", wanted) if isinstance(wanted, list) else [wanted]
        names = {self._named(str(each)) for each in texts}
        within = {path for path in found if path in names or any(path.startswith(f"{name}/") for name in names)}
        return {path: stamp for path, stamp in found.items() if path in within}

    def agent(self, args: Mapping[str, Any]) -> str:
        """Return the full id of the agent that a call names. Blocks. Raises UsageError if the name is ambiguous."""
        return self.copies.whole(str(args.get("agent_id") or ""))

    def paths(self, args: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the paths that rules judge and the user is asked about. Only these are applied."""
        found: dict[str, Stamp | None] = {}
        with suppress(UsageError):
            # The call itself reports that the name is ambiguous.
            found = {} if self.working(self.agent(args)) else self.named(args)
        if len(self.judged) > MOST_JUDGED:
            self.judged.clear()
        self.judged[_key(args)] = found
        return tuple(str(self.copies.project / path) for path in found)

    def steps(self, args: Mapping[str, Any]) -> list[_Step]:
        """Return the changes of a call. Blocks. Raises ToolFailure, UsageError, PathRefused."""
        agent_id = self.agent(args)
        if self.working(agent_id):
            raise ToolFailure(
                "validation_error", f"{agent_id} still works.", "Wait for its end, then apply its changes."
            )
        kept = self.copies.kept(agent_id)
        named = self.named(args, anew=True)
        if named != self.judged.get(_key(args)):
            raise ToolFailure(
                "validation_error", f"{agent_id} changed its copy in between.", "Call apply_changes again."
            )
        changes = [change for path in named if (change := kept.change(path))]
        if not changes:
            raise ToolFailure(
                "not_found", f"{agent_id} has no changes that are not in the project.", "Go on with the task."
            )
        steps, conflicts, size = list[_Step](), list[tuple[str, MergeResult]](), 0
        for change in changes:
            path = self.workspace.resolve(str(self.copies.project / change.path))
            shown = self.workspace.shown(path)
            if path != self.copies.project / change.path:
                conflicts.append((shown, MergeResult(why="a link leads elsewhere in the project")))
                continue
            now = read_bytes(path, shown, self.workspace) if os.path.lexists(path) else None
            size += len(now or b"") + len(change.after or b"")
            if size > MOST_BYTES:
                message = f"The files are larger than {MOST_BYTES // 1_000_000} MB together."
                raise ToolFailure("resource_error", message, "Apply them in parts: name some of them in paths.")
            result = merged(kept.since(change, now), now)
            if result.why:
                conflicts.append((shown, result))
            else:
                mode = change.mode if now is None else None
                steps.append(_Step(FileStep(path, shown, now, result.data, mode), change))
        if conflicts:
            raise _conflicting(agent_id, conflicts, len(changes))
        return steps

    def preview(self, args: Mapping[str, Any]) -> Diff | Diffs | None:
        """Return a preview of a call. Blocks. Raises as ``steps`` does."""
        self.shown[_key(args)] = ""
        steps = self.steps(args)
        self.shown[_key(args)] = _digest(steps)
        return _display(steps)

    def apply(self, args: Mapping[str, Any], begun: Commit) -> ToolResult:
        """Make the changes, unless ``begun`` stops them. Blocks. Raises as ``steps`` does; then nothing is changed.

        The copy is kept: applied changes are recognized by comparison, so a rewind or a crash in the middle does no
        harm. The merged content of each file is recorded, so that its agent can continue from there.
        """
        steps = self.steps(args)
        # While a question waits, the agent may continue and the project may change.
        if self.shown.pop(_key(args), None) not in {None, _digest(steps)}:
            message = "These are no longer the changes that the user was asked about; nothing was changed."
            raise ToolFailure("validation_error", message, "Call apply_changes again.")
        writing = [each for each in steps if each.step.before != each.step.after]
        begun.begin()
        commit([each.step for each in writing], self.ahead, NAME)
        kept = self.copies.kept(self.agent(args))
        with suppress(OSError):
            for each in writing:
                if each.step.after is not None and each.change.after is not None:
                    kept.note(each.change.path, each.step.after, each.change.after)
        if not writing:
            return ToolResult("The project already holds these changes.", summary="unchanged")
        sizes = [each.plan.size().split() for each in writing]
        added, removed = (sum(abs(int(size[index])) for size in sizes) for index in (0, 1))
        lines = [each.done() for each in writing[:LISTED]]
        if len(writing) > LISTED:
            lines.append(f"… and {len(writing) - LISTED} more.")
        text = "\n".join(lines)
        files = f"{len(writing)} files " if len(writing) > 1 else ""
        return ToolResult(text, _display(writing), summary=f"{files}+{added} -{removed}")

    def _named(self, text: str) -> str:
        path = self.workspace.named(text)
        return path.relative_to(self.copies.project).as_posix() if path.is_relative_to(self.copies.project) else text


def apply_changes_tool(definition: Definition, applying: ChangeApplier) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        return await commit_whole(partial(applying.apply, args), call)

    async def preview(args: Mapping[str, Any]) -> Display | None:
        return await asyncio.to_thread(applying.preview, args)

    own = replace(definition, facts=replace(definition.facts, paths_of=applying.paths))
    return own.tool(run, preview=preview)


def session_changes_tool(
    definition: Definition,
    copies: Copies,
    workspace: Workspace,
    ahead: WriteAhead,
    works: Callable[[str], bool],
) -> Tool:
    """Return the tool for the copies of a session."""
    return apply_changes_tool(definition, ChangeApplier(copies, workspace, ahead, works))


def _key(args: Mapping[str, Any]) -> str:
    return json.dumps(args, sort_keys=True, default=str)


def _digest(steps: Sequence[_Step]) -> str:
    found = hashlib.blake2b(digest_size=16)
    for each in steps:
        for part in (os.fsencode(each.step.path), each.step.before, each.step.after):
            found.update(b"-" if part is None else b"%d:%b" % (len(part), part))
    return found.hexdigest()


def _display(steps: Sequence[_Step]) -> Diff | Diffs | None:
    diffs = tuple(each.diff() for each in steps if each.step.before != each.step.after)
    return diffs[0] if len(diffs) == 1 else Diffs(diffs) if diffs else None


def _words(data: bytes | None) -> str:
    return "" if data is None or binary_kind(data[:8192]) else plain_lines(detect(data).decode(data))


def _conflicting(agent_id: str, conflicts: Sequence[tuple[str, MergeResult]], total: int) -> ToolFailure:
    files = [f"{shown}: {result.why}" for shown, result in conflicts[:LISTED]]
    parts = [f"{shown}:\n{_meeting(result.text)}" for shown, result in conflicts if result.text]
    text = "\n".join(
        [
            f"{len(conflicts)} of {count(total, 'file')} of {agent_id} can't be merged; nothing was changed.",
            *files,
            "\n".join(parts)[:MOST_SHOWN],
        ]
    ).rstrip()
    hint = "Make these changes yourself with edit_file and apply the others with paths, or have the agent look again."
    return ToolFailure("validation_error", text, hint)


def _meeting(text: str) -> str:
    """Return the parts between git's markers, each with the line before it."""
    shown, inside, last = list[str](), False, ""
    for line in text.splitlines():
        if line.startswith(MARKED):
            inside = True
            shown += [last] if last else []
        if inside:
            shown.append(line)
        if line.startswith(">>>>>>>"):
            inside = False
        last = line
    return "\n".join(shown)
