"""The sources of the settings as places: their addresses with secrets, and helpers that alone have the network."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import quote, unquote

from ba_tui.core.profiles import READING
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import EnginePlace
from ba_tui.features.data.analysis.errors import SourceFailed
from ba_tui.features.data.analysis.sources import Address, SourcePlace
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.processes.confinement import Confinement
from ba_tui.processes.worker_values import WorkerSettings
from ba_tui.resources import Places
from ba_tui.settings import Settings
from ba_tui.settings.environment import variables
from ba_tui.settings.keys import read_key
from ba_tui.settings.sections.sources import REFERENCE, SourceSettings

KEYRING = "keyring:"
SQLITE = "sqlite"
SQLITE_FILES = ("", "-wal", "-shm", "-journal")


@frozen
class SourceSetup:
    """What the sources of a session are made of. ``root``: where relative paths of files begin."""

    settings: Settings
    where: Places
    sandbox: Sandbox
    root: Path

    def places(self, engine: EnginePlace) -> tuple[SourcePlace, ...]:
        """Return each source of the settings; their results land beside those of ``engine``. Reads nothing yet."""
        return tuple(self._place(name, source, engine) for name, source in self.settings.sources.items())

    def _place(self, name: str, source: SourceSettings, engine: EnginePlace) -> SourcePlace:
        own = engine.folder / "inbox" / name
        known = variables(self.where) if source.environment else {}
        environment = {**engine.worker.environment, **{key: known[key] for key in source.environment if key in known}}
        file = _file(source.url, self.root)
        worker = WorkerSettings(own, environment, engine.worker.limits, partial(self._confined, source, file, own))
        scheme = source.url.partition(":")[0]
        address = partial(read_address, name, f"{SQLITE}://{file}" if file else source.url, self.where)
        return SourcePlace(name, scheme, address, worker, source.writable, source.share, source.ask_cost)

    def _confined(self, source: SourceSettings, file: Path | None, own: Path) -> Confinement | None:
        """Plain: the helper reads no files but those that it is given."""
        beside = tuple(Path(f"{file}{ending}") for ending in SQLITE_FILES) if file and not source.writable else ()
        given = tuple(path.expanduser().resolve() for path in source.files)
        # SQLite makes files beside the one that it writes.
        writable = (own, file.parent) if file and source.writable else (own,)
        profile = replace(READING, readable=(*given, *beside), writable=writable, plain=True, network=file is None)
        return self.sandbox.confine(profile, originals=True)


def read_address(name: str, url: str, where: Places) -> Address:
    """Return ``url`` with the values of its references, as an address has them. Blocks.

    Raises:
        SourceFailed: one of them has no value.
    """
    secrets: list[str] = []
    known = variables(where)

    def value(reference: str) -> str:
        inner = reference[2:-1]
        key = read_key(inner.removeprefix(KEYRING), None, where) if inner.startswith(KEYRING) else None
        found = key.value if key else known.get(inner, "")
        if not found:
            what = (
                f"The keyring has no entry {inner.removeprefix(KEYRING)}" if KEYRING in inner else f"{inner} is not set"
            )
            raise SourceFailed(f"{name} can't be reached: {what}.", _cure(inner))
        secrets.extend((found, quote(found, safe="")))
        return quote(found, safe="")

    made = REFERENCE.sub(lambda match: value(match[0]), url)
    return Address(made, tuple(dict.fromkeys(secrets)))


def _cure(inner: str) -> str:
    if inner.startswith(KEYRING):
        return f"Save it: keyring set ba {inner.removeprefix(KEYRING)}"
    return f"Set the environment variable {inner} before you start ba."


def _file(url: str, root: Path) -> Path | None:
    """The file of an SQLite source, absolute."""
    scheme, _, rest = url.partition(":")
    if scheme != SQLITE:
        return None
    return (root / Path(unquote(rest.removeprefix("//"))).expanduser()).resolve()
