"""Agreed definitions of figures, read from ``metrics/*.yaml`` of the user and the project."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line, quoted, suggestion
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.nearby import OWN_METRICS, PROJECT_METRICS
from ba_tui.ingress import Owner, Read
from ba_tui.settings.document import read_document

ENDINGS = (".yaml", ".yml")
MOST_FILES = 200
MOST_METRICS = 500
LONGEST_SQL = 5_000
LONGEST_TEXT = 300
FIELDS = ("name", "sql", "from", "grain", "unit", "owner", "synonyms", "description")
_NAME = regex(r"[^\W\d]\w{0,59}")
_RESULT = regex(r"(?i)r\d+")
_APART = regex(r"[\s_\-]+")


@frozen
class Metric:
    """A definition: ``sql`` is an aggregate over the rows of ``source`` (a table or join; empty when the query names
    the table). ``grain``: columns it may be grouped by, with their SQL; empty for any. ``shown`` is the file for
    messages; ``trouble`` is why it can't be used."""

    name: str
    sql: str = ""
    source: str = ""
    grain: tuple[tuple[str, str], ...] = ()
    unit: str = ""
    owner: str = ""
    synonyms: tuple[str, ...] = ()
    description: str = ""
    shown: str = ""
    trouble: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Name and synonyms in comparable form."""
        return tuple(dict.fromkeys(map(folded, (self.name, *self.synonyms))))

    @property
    def line(self) -> str:
        """Name, unit and grain in a few words."""
        unit = f" in {self.unit}" if self.unit else ""
        grain = f" by {', '.join(name for name, _ in self.grain)}" if self.grain else ""
        return f"{self.name}{unit}{grain}"


@frozen
class MetricFolder:
    """A folder of definitions: ``shown`` is its name in messages, ``open`` returns whether its files may be used
    now."""

    path: Path
    owner: Owner
    shown: str
    open: Callable[[], bool] = lambda: True


def metric_folders(config: Path, root: Path, trusted: Callable[[], bool]) -> tuple[MetricFolder, ...]:
    """Return the user's folder, and the one of the project at ``root``, which is used once the project is trusted."""
    own = MetricFolder(config / OWN_METRICS, "user", str(config / OWN_METRICS))
    return own, MetricFolder(root / PROJECT_METRICS, "project", PROJECT_METRICS, trusted)


class Metrics:
    """The definitions in some folders; changed files are read again. ``read`` gets the owner of a file. Thread-safe;
    every method blocks briefly."""

    def __init__(self, folders: Sequence[MetricFolder] = (), read: Callable[[Owner], Read] | None = None) -> None:
        self._folders = tuple(folders)
        self._reader = read
        self._lock = threading.Lock()
        self._stamp: object = None
        self._known: tuple[Metric, ...] = ()

    def look(self) -> tuple[Metric, ...]:
        """Return all definitions by name, including unusable ones."""
        with self._lock:
            files = [(folder, path) for folder in self._folders if folder.open() for path in _files(folder.path)]
            stamp = [(str(path), *_state(path)) for _, path in files]
            if stamp != self._stamp:
                found = [metric for folder, path in files for metric in self._read(folder, path)]
                self._known = _unambiguous(found)[:MOST_METRICS]
                self._stamp = stamp
            return self._known

    def usable(self) -> tuple[Metric, ...]:
        return tuple(metric for metric in self.look() if not metric.trouble)

    def find(self, name: str) -> Metric | None:
        """Return the definition with a name or synonym, ignoring case; usable ones first."""
        wanted = folded(name)
        found = [metric for metric in self.look() if wanted in metric.names]
        return min(found, key=lambda metric: (bool(metric.trouble), folded(metric.name) != wanted), default=None)

    def _read(self, folder: MetricFolder, path: Path) -> Iterator[Metric]:
        shown = f"{folder.shown}/{path.name}"
        reader = self._reader(folder.owner) if self._reader else None
        document = read_document(path, reader) if reader else read_document(path)
        if document is None:
            return
        if document.broken:
            problem = document.problems[0]
            at = f", line {problem.line}" if problem.line else ""
            yield Metric(path.stem, shown=shown, trouble=f"{shown}{at}: {one_line(problem.text, LONGEST_TEXT)}")
            return
        entries: Any = document.data.get("metrics", document.data)
        for each in cast("list[Any]", entries) if isinstance(entries, list) else [entries]:
            yield metric_of(each, path.stem if each is document.data else "", shown)


def metric_of(given: Any, stem: str, shown: str) -> Metric:
    """Return the definition in ``given``, a part of a YAML file; ``stem`` is its default name."""
    if not isinstance(given, dict):
        return Metric(stem or "?", shown=shown, trouble=f"{shown}: expected `name: …` and `sql: …`")
    fields = {str(key): value for key, value in cast("Mapping[Any, Any]", given).items()}
    name = _text(fields.get("name", stem))
    metric = Metric(
        name,
        _text(fields.get("sql")),
        _text(fields.get("from")),
        tuple(_grain(fields.get("grain"))),
        _text(fields.get("unit")),
        _text(fields.get("owner")),
        tuple(_texts(fields.get("synonyms"))),
        _text(fields.get("description")),
        shown,
    )
    trouble = next(_troubles(metric, fields), "")
    return replace(metric, trouble=f"{shown}: {one_line(trouble, LONGEST_TEXT)}") if trouble else metric


def _troubles(metric: Metric, fields: Mapping[str, Any]) -> Iterator[str]:
    for key in fields:
        if key not in FIELDS:
            yield f"{key} is not a field of a metric; {suggestion(key, FIELDS)}"
    if not metric.name:
        yield "a metric has no name"
    if not _NAME.fullmatch(metric.name) or _RESULT.fullmatch(metric.name):
        yield f"{metric.name!r} can't be a name: use letters, digits and underscores, and not R1"
    if not metric.sql:
        yield f"{metric.name} has no sql. Write an aggregate, such as sum(amount)"
    for part in (metric.sql, metric.source, *(sql for _, sql in metric.grain)):
        if len(part) > LONGEST_SQL:
            yield f"{metric.name}: its SQL is longer than {LONGEST_SQL:,} characters"
        if ";" in part:
            yield f"{metric.name}: its SQL has a semicolon; expected an expression"
    if metric.sql.split(None, 1)[:1] and metric.sql.split(None, 1)[0].lower() in {"select", "with", "from"}:
        yield f"{metric.name}: sql is a whole query. Write its aggregate as sql and its tables as from"
    for key in ("sql", "from", "unit", "owner", "description", "name"):
        if fields.get(key) is not None and not isinstance(fields[key], str | int | float):
            yield f"{metric.name}: {key} must be text"


def folded(name: str) -> str:
    """Return a name in comparable form: case, spaces, hyphens and underscores are ignored."""
    return _APART.sub("_", name.strip().casefold())


def _unambiguous(found: Iterable[Metric]) -> tuple[Metric, ...]:
    """Return the definitions sorted by name. Two that share a name or synonym can't be used."""
    metrics = sorted(found, key=lambda metric: metric.name.casefold())
    owners: dict[str, list[Metric]] = {}
    for metric in metrics:
        if not metric.trouble:
            for name in metric.names:
                owners.setdefault(name, []).append(metric)
    distinct: list[Metric] = []
    for metric in metrics:
        twice = next((name for name in metric.names if len(owners.get(name, ())) > 1), "")
        if twice and not metric.trouble:
            places = " and ".join(dict.fromkeys(each.shown for each in owners[twice]))
            trouble = f"{twice} is defined twice, in {places}. Remove or rename one"
            metric = replace(metric, trouble=trouble)
        distinct.append(metric)
    return tuple(distinct)


def _files(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.lower().endswith(ENDINGS))
    except OSError:
        return []
    return [folder / name for name in names[:MOST_FILES]]


def _state(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _text(value: Any) -> str:
    return str(value).strip() if isinstance(value, str | int | float) else ""


def _texts(value: Any) -> list[str]:
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [text for item in items if (text := _text(item))]


def _grain(value: Any) -> Iterator[tuple[str, str]]:
    """Parse the grain: a column, a list of columns, or names with their SQL."""
    if isinstance(value, dict):
        yield from ((str(name), _text(sql)) for name, sql in cast("Mapping[Any, Any]", value).items())
        return
    for name in _texts(value):
        yield name, quoted(name)
