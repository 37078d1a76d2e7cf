"""Settings in, doors out: what a face, a workflow or a command is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from ba_tui.assembly.admitting import trusting
from ba_tui.assembly.keeping import upkeep
from ba_tui.assembly.stock import Stock, ToolSetting
from ba_tui.assembly.workshop import Workshop
from ba_tui.core.conversation import Doors
from ba_tui.core.errors import UsageError
from ba_tui.core.events import Notice
from ba_tui.core.ports.trust import TrustState
from ba_tui.core.provider import ModelInfo
from ba_tui.core.text.wording import sentence
from ba_tui.core.tool import Tool
from ba_tui.observe.logs import start_logging
from ba_tui.permissions.rules.rulebook import strangers
from ba_tui.permissions.secrets.scanner import redact
from ba_tui.permissions.trust.grants import Trust
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.catalog import ModelCatalog, load_catalog
from ba_tui.resources import Places, bundled, clear_unfinished, folder_slug, open_places, places, project_root, there
from ba_tui.sessions.library import SessionLibrary
from ba_tui.sessions.results.artifacts import FOLDER, Artifacts
from ba_tui.settings import Loaded, Problem, load_settings
from ba_tui.tools.registry import Registry


def connect(flags: Mapping[str, object], cwd: Path, *, strict: bool = False, ours: bool = False) -> Doors:
    """Everything a face needs, for ``cwd``. ``strict`` is for runs that nobody attends: wrong settings are an error,
    and in a folder that is not trusted the mode and the rules that the person gave decide, not reads only.
    ``ours``: the folder was made by ba, so nobody need be asked about it.

    Raises:
        UsageError: a flag is wrong, or, when strict, a settings file is. StorageError: the person's folders are closed.
    """
    where = open_places()
    root, trust = project_root(cwd), trusting(where, cwd)
    seen = trust.look(root)
    loaded = load_settings(flags, where, root, trusted=seen.state == "trusted")
    if strict:
        loaded.check()
    start_logging(where, loaded.settings.log_level, redact)
    clear_unfinished(where)
    catalog, trouble = _catalog(where, strict=strict)
    access = ProviderAccess(loaded, catalog, where)
    asked = None if strict or ours else trust
    workshop = Workshop(loaded, where, cwd, access, asked)
    workshop.strict = strict
    if strict:
        workshop.check(trusted=seen.state == "trusted")
    library = workshop.library = SessionLibrary(where.sessions, cwd, folder_slug, workshop.conversation, redact)
    shelf = Shelf(catalog, loaded)
    notices = [*map(_notice, loaded.warnings), *trouble, *(Notice(text, "warning") for text in workshop.problems)]
    notices += [] if ours else _untrusted(seen, attended=not strict)
    chosen = loaded.settings
    return Doors(
        library, shelf, access, tuple(notices), chosen.output_format, partial(upkeep, where), asked, chosen.notify
    )


def tools_for(flags: Mapping[str, object], cwd: Path, results: Artifacts) -> Sequence[Tool]:
    """The tools of ``cwd`` within their guards, for work that needs no model; long results go to ``results``.

    Raises:
        UsageError: a flag or a settings file is wrong.
    """
    return list(_stock(flags, cwd, results).tools().values())


def registry_for(cwd: Path) -> Registry:
    """All tools that a conversation in ``cwd`` would find, and what is wrong with others. Close it after use.

    Raises:
        UsageError: a settings file is wrong.
    """
    stock = _stock({}, cwd, Artifacts(places().cache / FOLDER))
    stock.add_flows()
    return stock.registry


def _stock(flags: Mapping[str, object], cwd: Path, results: Artifacts) -> Stock:
    where = open_places()
    root = project_root(cwd)
    trusted = Trust(where).trusted(root)
    loaded = load_settings(flags, where, root, trusted=trusted)
    loaded.check()
    start_logging(where, loaded.settings.log_level, redact)
    clear_unfinished(where)
    workshop = Workshop(loaded, where, cwd, ProviderAccess(loaded, _catalog(where, strict=True)[0], where))
    workshop.check(trusted=trusted)
    stock = Stock(workshop, ToolSetting(cwd, results))
    stock.registry.refresh()
    if wrong := strangers((line for line in workshop.rules if line.layer == "flag"), stock.registry.names()):
        raise UsageError(sentence(wrong[0]), "See ba tools list.")
    return stock


def model_asked(loaded: Loaded) -> str:
    """The model that a new conversation asks. Raises StorageError when the key file can't be understood."""
    where = places()
    return ProviderAccess(loaded, _catalog(where, strict=False)[0], where).default_model()


def trust(cwd: Path) -> None:
    """Trust the project of ``cwd`` with what it holds now. Raises UsageError, StorageError."""
    granted = Trust(places())
    granted.grant(granted.look(project_root(cwd)))


def _untrusted(seen: TrustState, *, attended: bool) -> list[Notice]:
    """What the folder brings and what stays off until the person trusts it."""
    if seen.state == "trusted":
        return []
    brought = ", ".join("context files" if part.kind == "context" else part.kind for part in seen.holds)
    untold = [name for part in seen.holds if part.kind == "context" for name in part.names]
    files = f" Models don't see {'; '.join(untold)}." if untold else ""
    if seen.trouble:
        return [Notice(seen.trouble, "warning", "Until then the folder can't be trusted.")]
    if attended:
        off = f" What it brings is off: {brought}.{files}" if brought else ""
        return [Notice(f"This folder is not trusted: ba only reads here.{off}", "warning", "/trust changes that.")]
    if not brought:
        return []
    text = f"This folder is not trusted, so what it brings is off: {brought}.{files}"
    return [Notice(text, "info", "Review it, then run `ba trust`, or start with --trust.")]


def _catalog(where: Places, *, strict: bool) -> tuple[ModelCatalog, list[Notice]]:
    """The models that ship with ba and, over them, the person's own; a broken file of theirs is left out and told."""
    ours, theirs = bundled("config") / "models.yaml", where.config / "models.yaml"
    try:
        return load_catalog([ours, theirs] if there(theirs) else [ours]), []
    except UsageError as error:
        if strict:
            raise
        return load_catalog([ours]), [Notice(str(error), "warning", error.hint)]


class Shelf:
    """core.choices.Catalogue over the model catalogue."""

    def __init__(self, catalog: ModelCatalog, loaded: Loaded) -> None:
        self._catalog = catalog
        self._providers = frozenset(loaded.settings.providers)

    def models(self) -> Sequence[ModelInfo]:
        return [info for info in self._catalog.models() if info.provider in self._providers]


def _notice(problem: Problem) -> Notice:
    return Notice(sentence(str(problem)), "warning", "Correct it: ba config edit." if problem.fatal else "")
