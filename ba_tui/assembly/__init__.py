"""The composition root, the only package that names concrete classes. May import everything but the faces and the cli.

Read the modules in this order: ``start`` (shared by the process), ``tools`` (of one session),
``session`` (agents, interceptors and prompts). ``connect`` returns the services of an interface.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import cast

from ba_tui.assembly.session import conversation, tools_alone
from ba_tui.assembly.start import StartOptions, Startup, trust_for
from ba_tui.core.events import Notice
from ba_tui.core.services import Services
from ba_tui.core.values import late
from ba_tui.permissions.session import check_value, settings_of, untrusted_notices
from ba_tui.permissions.trust.grants import asked_once
from ba_tui.providers.access import ProviderSetup
from ba_tui.providers.catalog import ModelChoices
from ba_tui.resources import project_root
from ba_tui.settings.claude_files import foreign_notices
from ba_tui.settings.editing import SettingsOfFolder


@asked_once()
def connect(flags: Mapping[str, object], cwd: Path, *, strict: bool = False) -> Services:
    """Return the services of an interface for ``cwd``. ``strict`` is for unattended runs: wrong settings are an error,
    and in an untrusted folder the user's mode and rules decide instead of read-only access.

    Raises:
        UsageError: a flag is wrong, or, when strict, a settings file is. StorageError: no access to the user's folders.
    """
    start = Startup(cwd, StartOptions(flags, strict), conversation)
    trust, settings, kept = trust_for(start.where, cwd), start.settings, start.settings.checkpoints
    wrong = [Notice(text, "warning") for text in (*start.recovered, *start.rule_problems)]
    notices = [*start.loaded.notices(attended=not strict), *start.catalog_notices, *wrong]
    notices += foreign_notices(start.loaded.foreign, start.where)
    if not start.trusts(root := project_root(cwd)):
        notices += untrusted_notices(trust.look(root), attended=not strict)
    return Services(
        start.library, ModelChoices(start.catalog, settings.providers), ProviderSetup(start.access, start.where),
        tuple(notices), settings.output_format, partial(late("ba_tui.sessions.upkeep:upkeep"), start.where, kept),
        partial(late("ba_tui.sessions.upkeep:tidy"), start.where, kept),
        None if strict else trust, settings.notify,
        SettingsOfFolder(start.where, partial(settings_of, cwd, start.where), check_value),
        partial(late("ba_tui.assembly.doctor:examined"), cwd), partial(_with_folders, flags, cwd, strict),
        settings.max_turns,
    )  # fmt: skip


def _with_folders(flags: Mapping[str, object], cwd: Path, strict: bool, folders: Sequence[Path]) -> Services:
    listed = cast("Sequence[str]", flags.get("add_dirs") or ())
    return connect({**flags, "add_dirs": [*listed, *map(str, folders)]}, cwd, strict=strict)


__all__ = ["connect", "tools_alone"]
