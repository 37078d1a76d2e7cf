"""The hooks of one session: fired when there are any, listed, and checked by the doctor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.core.events import Notice
from ba_tui.core.ports.contributions import CheckResult
from ba_tui.core.ports.permissions import HookListing, HookRun
from ba_tui.core.values import frozen, late
from ba_tui.feature import CheckContext, OpenFeature, SessionContext, Stage, for_every_agent
from ba_tui.ingress import Ingress
from ba_tui.permissions.trust.grants import Trust
from ba_tui.resources import project_root
from ba_tui.settings import printable
from ba_tui.settings.claude_files import claude_paths
from ba_tui.settings.hooks import EVENTS, FoundHooks, Hook, found_hooks, read_claude

if TYPE_CHECKING:
    from ba_tui.features.hooks.runner import HookTurns

UNTRUSTED = "off: this folder is not trusted (/trust)"
OURS = (".ba/config.yaml", ".ba/config.local.yaml")


@frozen
class ListedHooks:
    """core.ports.permissions.HookList. ``found`` apply in the project ``root``; ``wrong``: why others do not.
    ``trusted`` returns whether the user trusts the folder, ``last`` the last run of a hook."""

    found: Sequence[Hook]
    wrong: Sequence[str]
    root: Path
    trusted: Callable[[], bool]
    last: Callable[[Hook], HookRun | None]

    def lines(self) -> Sequence[HookListing]:
        """See core.ports.permissions.HookList."""
        lines = [self._line(hook) for hook in self.found]
        if not self.trusted():
            lines += [self._line(hook, UNTRUSTED) for hook in self._of_folder()]
        order = list(dict.fromkeys(EVENTS.values()))
        return sorted(lines, key=lambda line: order.index(line.event))

    def problems(self) -> Sequence[str]:
        """See core.ports.permissions.HookList."""
        ours = [] if self.trusted() else [name for name in OURS if (self.root / name).is_file()]
        closed = [f"Hooks in {', '.join(ours)} are off: this folder is not trusted (/trust)."] if ours else []
        return [*self.wrong, *closed]

    def _of_folder(self) -> Sequence[Hook]:
        """Return the hooks that trust in the folder would enable; they are read but not run."""
        files = [path for path, project in claude_paths(self.root) if project]
        return [hook for path in files for hook in read_claude(path, self.root)[0]]

    def _line(self, hook: Hook, off: str = "") -> HookListing:
        source = hook.source.removeprefix(f"{self.root}/")
        return HookListing(
            hook.event,
            hook.text,
            hook.matcher,
            source,
            "user" if source == hook.source else "project",
            hook.timeout,
            "prompt" if hook.prompt else "command",
            self.last(hook),
            off,
        )


def open_hooks(context: SessionContext) -> OpenFeature:
    """Offer HookList to faces, and PromptHooks if the user has hooks. Without hooks their runner is not imported."""
    found, root = context.offered(FoundHooks), project_root(context.scope.cwd)
    turns = _turns(found.hooks, context, root) if found.hooks else None
    runs = turns.hooks.runs if turns else dict[Hook, HookRun]()
    listed = ListedHooks(*found, root, lambda: Trust(context.where).trusted(root), runs.get)
    opened = OpenFeature(
        ports={"ba_tui.core.ports.permissions:HookList": lambda: listed},
        notices=tuple(Notice(f"A hook can't be used: {text}", "warning") for text in found.problems),
    )
    if turns is None:
        return opened
    return replace(
        opened,
        hook_guards=partial(late("ba_tui.features.hooks.guard:hooking"), turns.hooks),
        interceptors=((Stage.HOOK, for_every_agent(turns)),),
        listeners=(turns.apply,),
        ports={**opened.ports, "ba_tui.context.ports:PromptHooks": lambda: turns},
        close=turns.close,
    )


def _turns(hooks: Sequence[Hook], context: SessionContext, root: Path) -> HookTurns:
    from ba_tui.features.hooks.runner import (  # noqa: PLC0415 - most users have no hooks
        Hooks,
        HookTurns,
        SessionFacts,
    )

    scope, policy = context.scope, context.permissions.policy
    facts = SessionFacts(scope.id, scope.file, scope.cwd, root, context.shell.inherited(), lambda: policy.mode)
    return HookTurns(Hooks(hooks, facts, context.offered(Ingress).clean, scope.ask))


def hook_checks(context: CheckContext) -> Iterator[CheckResult]:
    """Yield a warning for each hook of the project that can't be used."""
    for text in found_hooks(context.loaded.hooks, context.root, context.trusts).problems:
        yield CheckResult("hooks", "warn", printable(text), "ba hooks list; see ba guide hooks.")
