"""Makes of a call what rules can be compared with: its command, taken apart, and the paths that it names.

What follows from that is decided in ``policy``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ba_tui.core.tool import Effect, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import PathRefused, TouchedPath, Workspace
from ba_tui.permissions.rules.rule import CODE_TOOLS, OUTER, SHELL_TOOLS, Subject
from ba_tui.permissions.sandbox.protected_files import is_protected, respelled
from ba_tui.permissions.secrets.hard_links import holds_secret
from ba_tui.permissions.shell.command_text import named_paths, without_operators
from ba_tui.resources import Places

if TYPE_CHECKING:
    from ba_tui.permissions.shell.resolved_command import ResolvedCommand


@frozen
class Subjects:
    """``own``: ba's folders, which only the person changes. ``confined``: whether a sandbox holds commands; ``unheld``:
    why none holds what only reads, empty when one does."""

    workspace: Workspace
    own: Places | None = None
    confined: Callable[[], bool] = lambda: False
    unheld: Callable[[], str] = lambda: "no sandbox is known"

    def of(self, tool: Tool, args: Mapping[str, Any], cwd: Path) -> Subject:
        """The call as rules see it; ``cwd`` is where a command would run. Raises PathRefused."""
        texts, effect = tool.paths(args), tool.effect_of(args)
        if (tool.facts.paths or tool.facts.paths_of) and not texts:
            texts = (".",)
        paths = tuple(self._lent(seen, effect) for text in texts for seen in self.both(text))
        command: str | None = None
        named: tuple[TouchedPath, ...] = ()
        commands: tuple[ResolvedCommand, ...] = ()
        trouble = ""
        if tool.effect is Effect.EXECUTE and tool.facts.target:
            command, trouble = str(args.get(tool.facts.target, "")), "the command was not checked"
            text = without_operators(command) if tool.name in CODE_TOOLS else command
            if tool.name in SHELL_TOOLS:
                resolved = judging().resolve_script(command, self.workspace.root, cwd, self.both)
                lent = bool(self.workspace.lent) and args.get(OUTER) is not True and self.confined()
                commands = tuple(map(self._with_lent, resolved.commands)) if lent else resolved.commands
                trouble = resolved.trouble
                text = text if trouble else " ".join(each.unread for each in commands).strip()
            if text:
                found = dict.fromkeys(path for pair in named_paths(text, self.workspace, cwd) for path in pair)
                named = tuple(self.seen(path) for path in found)
        saves, why = effect is not tool.effect, self.unheld() if tool.facts.reads else ""
        reads = tool.facts.reads and not why
        unheld = f"it declares effect: read, but nothing keeps it from writing here: {why}" if why else ""
        if effect is Effect.READ and unheld:
            effect = Effect.EXECUTE
        call = (tool.name, effect, tool.target(args), command, paths, named)
        subject = Subject(
            *call,
            args=_whole(tool, args),
            confined=tool.facts.confined,
            reads=reads,
            unheld=unheld if tool.effect is Effect.READ else "",
            commands=commands,
            trouble=trouble,
            asks=tool.facts.asks,
            copied=tool.facts.copied,
        )
        if saves:
            subject = replace(subject, saves=True)
        return self._with_sql(subject, tool, args) if tool.facts.sql else subject

    def _with_sql(self, subject: Subject, tool: Tool, args: Mapping[str, Any]) -> Subject:
        """The call with what its SQL does, which may be more than the tool's usual effect, and the files it names."""
        text = str(args.get(tool.facts.sql) or "")
        sql = judging().classify(text, *((tool.facts.dialect_of(args),) if tool.facts.dialect_of else ()))
        files = tuple(seen for text in sql.files for seen in self.both(text))
        effect = Effect.NETWORK if sql.network else Effect.WRITE if sql.kinds - {"read"} else subject.effect
        kinds = {*sql.kinds, *(["network"] if sql.network else [])}
        return replace(subject, effect=effect, kinds=frozenset(kinds), paths=(*subject.paths, *files))

    def both(self, text: str, cwd: Path | None = None) -> list[TouchedPath]:
        """A path as written and as its links lead: a rule about either holds."""
        name, target = self.workspace.both(text, cwd)
        resolved = self.seen(target)
        if name is target or name == target:
            return [resolved]
        written = self.seen(name)
        # Where the file really lies decides about the workspace; what it is called may only make things stricter.
        strict = written.secret or written.guarded
        return [resolved, replace(written, inside=resolved.inside)] if strict else [resolved]

    def _lent(self, seen: TouchedPath, effect: Effect) -> TouchedPath:
        """What is lent counts as inside for who reads, and for nobody else."""
        if seen.inside or not self.workspace.lends(seen.path):
            return seen
        if effect is not Effect.READ:
            raise PathRefused(
                f"{self.workspace.shown(seen.path)} can only be read.",
                "Write the file to the workspace.",
                malformed=False,
            )
        return replace(seen, inside=True)

    def _with_lent(self, command: ResolvedCommand) -> ResolvedCommand:
        """``command``, which may read what is lent: in the sandbox nothing of that can be written."""

        def lent(files: Sequence[TouchedPath]) -> tuple[TouchedPath, ...]:
            return tuple(
                replace(seen, inside=True, guarded=False) if self.workspace.lends(seen.path) else seen for seen in files
            )

        return replace(command, reads=lent(command.reads), named=lent(command.named))

    def seen(self, path: Path) -> TouchedPath:
        """What rules know of a resolved path."""
        places = self.workspace.places(path)
        own = self.own
        secret = holds_secret(path, self.workspace) or bool(own and path in own.secrets)
        folders = {own.config, own.data, own.state} if own else set[Path]()
        guarded = any(map(path.is_relative_to, folders)) or any(
            is_protected(Path(place)) for place in places or (path,)
        )
        guarded = guarded or path in self.workspace.started or respelled(path)
        relative = self.workspace.relative(path) if places else None
        return TouchedPath(path, relative, places, bool(places), secret, guarded)


def judging():
    """What judging a command takes. Not before one is judged: most of it is grammar."""
    from ba_tui.permissions.shell import judging  # noqa: PLC0415

    return judging


def _whole(tool: Tool, args: Mapping[str, Any]) -> Mapping[str, Any]:
    """``args`` with the defaults of what is left out, since conditions are about what would really happen."""
    known: Any = tool.input_schema.get("properties")
    if not isinstance(known, Mapping):
        return args
    fields = cast("Mapping[str, Any]", known).items()
    return {**{name: about["default"] for name, about in fields if name not in args and "default" in about}, **args}
