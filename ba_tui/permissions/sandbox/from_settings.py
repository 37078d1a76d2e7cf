"""The sandbox and the limits of commands, out of the settings."""

from __future__ import annotations

from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.sandbox.layout import FileReach
from ba_tui.permissions.secrets.known import KnownSecrets, MaskPlaces
from ba_tui.processes.limits import GIGABYTE, ProcessLimits
from ba_tui.resources import Places, folder_slug, user_home
from ba_tui.settings import Settings


def sandbox_for(settings: Settings, where: Places, workspace: Workspace, known: KnownSecrets | None = None) -> Sandbox:
    """Nothing is looked for yet; that happens at the first command. ``known`` learns the values that masks hide."""
    commands = settings.commands
    reach = FileReach(
        (workspace.root, *workspace.extra),
        commands.write,
        (*commands.read, *(lent.folder for lent in workspace.lent)),
        tuple(dict.fromkeys((where.config, where.data, where.cache, where.state))),
        network=commands.network,
        home=user_home(),
        started=workspace.started,
    )
    kept = where.cache / "searched" / folder_slug(workspace.root)
    # With any other setting, the user or the model is to see what a text holds.
    searched = settings.secrets == "redact"
    masks = MaskPlaces(where.cache / "masks", kept, known or KnownSecrets(), searched)
    return Sandbox(reach, settings.sandbox, masks=masks)


def limits_for(settings: Settings) -> ProcessLimits:
    given = settings.commands
    memory, size = int(given.memory_gb * GIGABYTE), int(given.file_size_gb * GIGABYTE)
    return ProcessLimits(memory or None, size or None, given.processes or None)
