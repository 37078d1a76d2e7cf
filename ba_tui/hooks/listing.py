"""The hooks of one conversation as a list: those that count, and those of a folder that nobody trusts yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ba_tui.core.ports.hooks import HookListing, HookRun
from ba_tui.core.values import frozen
from ba_tui.hooks.config import EVENTS, Hook

UNTRUSTED = "off: this folder is not trusted (/trust)"
OURS = (".ba/config.yaml", ".ba/config.local.yaml")


@frozen
class ListedHooks:
    """core.ports.hooks.HookList. ``found`` count in the project ``root``, ``wrong`` says why others do not; ``trusted``
    tells whether the person trusts the folder, ``last`` how a hook went."""

    found: Sequence[Hook]
    wrong: Sequence[str]
    root: Path
    trusted: Callable[[], bool]
    last: Callable[[Hook], HookRun | None]

    def lines(self) -> Sequence[HookListing]:
        """See core.ports.hooks.HookList."""
        lines = [self._line(hook) for hook in self.found]
        if not self.trusted():
            lines += [self._line(hook, UNTRUSTED) for hook in self._of_folder()]
        order = list(dict.fromkeys(EVENTS.values()))
        return sorted(lines, key=lambda line: order.index(line.event))

    def problems(self) -> Sequence[str]:
        """See core.ports.hooks.HookList."""
        ours = [] if self.trusted() else [name for name in OURS if (self.root / name).is_file()]
        closed = [f"Hooks in {', '.join(ours)} are off: this folder is not trusted (/trust)."] if ours else []
        return [*self.wrong, *closed]

    def _of_folder(self) -> Sequence[Hook]:
        """What trusting the folder would bring: read, and never run."""
        from ba_tui.hooks.claude_files import read_claude  # noqa: PLC0415 - most people have no hooks
        from ba_tui.settings.claude.files import claude_paths  # noqa: PLC0415

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
