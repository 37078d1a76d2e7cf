"""The session that tools belong to, and the folders beside the workspace that may be read in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from functools import partial
from pathlib import Path

from ba_tui.context.attachments import FOLDER as ATTACHED
from ba_tui.context.instruction_files import InstructionPlace
from ba_tui.context.instructions import instruction_files
from ba_tui.core.agent import AskModel
from ba_tui.core.spawning import MakeAgent
from ba_tui.core.transcript import Transcript
from ba_tui.core.values import frozen
from ba_tui.ingress import Ingress
from ba_tui.permissions.paths import ReadOnlyFolder
from ba_tui.permissions.session import InstructionFiles
from ba_tui.resources import Places, user_home
from ba_tui.sessions.results.artifacts import FOLDER, Artifacts
from ba_tui.settings import Settings
from ba_tui.settings.plugins import Plugin
from ba_tui.tools.builtin.recall import ReadHistory, nothing_said
from ba_tui.tools.modalities import Modalities
from ba_tui.tools.model_requests import ModelRequests

PYTHON_FILES = "artifacts"
"""Folder of a session with the files that Python writes."""


@frozen
class Delegating:
    """What a conversation brings: the id of the main agent's ``model``, and what makes agents to be run."""

    model: Callable[[], str]
    make: MakeAgent


@frozen
class SessionScope:
    """The session that tools belong to: its folder, its ``results``, what was said, and how full the window of the
    model in use is. ``id`` and ``file`` are empty for tools that no conversation uses."""

    cwd: Path
    results: Artifacts
    id: str = ""
    file: Path = Path()
    transcript: Transcript = field(default_factory=Transcript)
    history: ReadHistory = nothing_said
    fullness: Callable[[], float] = float
    modalities: Modalities = field(default_factory=Modalities)
    ask: AskModel | None = None
    """Asks the small model."""
    delegating: Delegating | None = None
    """What makes agents below others; None where no conversation is."""
    requests: ModelRequests | None = None
    """Asks the session's model beside its main agent."""

    @property
    def folder(self) -> Path | None:
        """The session's own folder; None where no conversation is kept."""
        return self.file.parent if self.id else None

    def instructions(self, settings: Settings, where: Places, ingress: Ingress) -> InstructionFiles:
        """Returns the files that instruct models here, given those that lie in the project."""
        place = InstructionPlace(self.cwd, ingress.root, where.config, user_home(), foreign=settings.other_instructions)
        return partial(instruction_files, place, ingress)

    def folders(self) -> tuple[ReadOnlyFolder, ...]:
        """Its own folders that may be read: long results, copies of files that came with prompts, files of Python."""
        results = ReadOnlyFolder(FOLDER, self.results.folder)
        own = (ReadOnlyFolder(name, self.file.parent / name) for name in (ATTACHED, PYTHON_FILES))
        return (results, *own) if self.id else (results,)


def lent_folders(skills: Iterable[tuple[str, Path]], plugins: Iterable[Plugin]) -> list[ReadOnlyFolder]:
    """Return the folders of skills and of the person's own plugins, which may be read without being asked about."""
    lent = [ReadOnlyFolder(name, folder) for name, folder in skills]
    return lent + [ReadOnlyFolder(f"@plugin:{each.name}", each.folder) for each in plugins if each.source == "user"]
