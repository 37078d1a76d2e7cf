"""What faces and commands of the terminal are given, for one folder."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.assembly.rooms import session_rooms
from ba_tui.assembly.session import conversation, unknown_tools
from ba_tui.assembly.start import StartOptions, Startup, trust_for
from ba_tui.assembly.tools import SessionScope, SessionTools
from ba_tui.core.conversation import Services
from ba_tui.core.events import Notice
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.text.wording import sentence
from ba_tui.core.tool import Tool
from ba_tui.permissions.trust.grants import Trust
from ba_tui.permissions.trust.wording import untrusted_notices
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.catalog import ModelChoices, chosen_catalog
from ba_tui.providers.setup import ProviderSetup
from ba_tui.resources import places, project_root
from ba_tui.sessions.checkpoints.keeper import checkpoints_for, session_start
from ba_tui.sessions.results.artifacts import FOLDER, Artifacts
from ba_tui.sessions.upkeep import upkeep
from ba_tui.settings import Loaded, Problem, Settings, load_settings
from ba_tui.tools.registry import Registry

if TYPE_CHECKING:
    from ba_tui.providers.tokens.exact import ExactCounts


def connect(flags: Mapping[str, object], cwd: Path, *, strict: bool = False, ours: bool = False) -> Services:
    """Everything a face needs, for ``cwd``. ``strict`` is for runs that nobody attends: wrong settings are an error,
    and in a folder that is not trusted the mode and the rules that the person gave decide, not reads only.
    ``ours``: the folder was made by ba, so nobody need be asked about it.

    Raises:
        UsageError: a flag is wrong, or, when strict, a settings file is. StorageError: the person's folders are closed.
    """
    asks = not strict and not ours
    start = Startup(cwd, StartOptions(flags, strict, asks), conversation)
    trust = trust_for(start.where, cwd)
    wrong = [Notice(text, "warning") for text in start.rule_problems]
    notices = [*map(_notice, start.loaded.warnings), *start.catalog_notices, *wrong]
    if not ours:
        notices += untrusted_notices(trust.look(project_root(cwd)), attended=not strict)
    settings = start.settings
    return Services(
        start.library,
        ModelChoices(start.catalog, settings.providers),
        ProviderSetup(start.access, start.where),
        tuple(notices),
        settings.output_format,
        partial(upkeep, start.where),
        trust if asks else None,
        settings.notify,
    )


def tools_for(flags: Mapping[str, object], cwd: Path, folder: Path) -> tuple[Mapping[str, Tool], Artifacts]:
    """The tools of ``cwd`` by name, within their guards, for work that needs no model, and where long results go: to
    ``folder``.

    Raises:
        UsageError: a flag or a settings file is wrong.
    """
    tools = _tools(flags, cwd, folder)
    return tools.registry.tools(), tools.results


def registry_for(cwd: Path) -> Registry:
    """All tools that a conversation in ``cwd`` would find, and what is wrong with others. Close it after use.

    Raises:
        UsageError: a settings file is wrong.
    """
    where, root = places(), project_root(cwd)
    tools = _tools({}, cwd, where.cache / FOLDER)
    rooms = session_rooms(tools, where, root if Trust(where).trusted(root) else None)
    tools.registry.join(source for room in rooms for source in room.tools)
    tools.registry.refresh()
    return tools.registry


def _tools(flags: Mapping[str, object], cwd: Path, folder: Path) -> SessionTools:
    start = Startup(cwd, StartOptions(flags), conversation)
    largest = int(start.settings.commands.output_mb * 1e6)
    tools = SessionTools(start, SessionScope(cwd, Artifacts(folder, largest)))
    tools.registry.refresh()
    unknown_tools(start, tools)
    return tools


def model_asked(loaded: Loaded) -> str:
    """The model that a new conversation asks. Raises StorageError when the key file can't be understood."""
    where = places()
    return ProviderAccess(loaded, chosen_catalog(where, strict=False)[0], where).default_model()


def exact_counts(model: str, cwd: Path, url: str) -> ExactCounts:
    """Token counts by the endpoint ``url``, with the key of the model's provider."""
    from ba_tui.providers.vendors import exact_counts  # noqa: PLC0415 - loads an SDK

    def prepared() -> tuple[Settings, ProviderAccess]:
        loaded = _settings(cwd)
        return loaded.settings, ProviderAccess(loaded, chosen_catalog(places(), strict=True)[0], places())

    return exact_counts(model, url, prepared)


def session_patch(info: SessionInfo, *, stat: bool = False) -> bytes:
    """What changed in files since a session began, as a patch or as a line a file; empty when it changed none.

    Raises:
        StorageError: the session or its checkpoints can't be read.
    """
    where = places()
    if not (first := session_start(where, info)):
        return b""
    largest = _settings(info.cwd).settings.checkpoints.max_file_mb
    return checkpoints_for(where, info.cwd, info.id, largest).patch(first, stat=stat)


def trust(cwd: Path) -> None:
    """Trust the project of ``cwd`` with what it holds now. Raises UsageError, StorageError."""
    granted = Trust(places())
    granted.grant(granted.look(project_root(cwd)))


def _settings(cwd: Path) -> Loaded:
    where, root = places(), project_root(cwd)
    return load_settings({}, where, root, trusted=Trust(where).trusted(root))


def _notice(problem: Problem) -> Notice:
    return Notice(sentence(str(problem)), "warning", "Correct it: ba config edit." if problem.fatal else "")
