"""``ba data metrics``: the agreed definitions, and what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ba_tui.cli.config import Cwd, folder_of, print_line, say
from ba_tui.core.text.wording import one_line, sentence, with_hint
from ba_tui.features.data.cli.opened import OK, opened_data, told
from ba_tui.resources import places, project_root

if TYPE_CHECKING:
    from ba_tui.features.data.analysis.metrics.definitions import Metric, Metrics
    from ba_tui.features.data.cli.opened import OpenedData

FOUND = 6
NONE = "No agreed definitions. Write one into .ba/metrics/NAME.yaml: sql: sum(amount) (ba guide metrics)."


def metrics(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="Data files to check the columns against.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="As a JSON list.")] = False,
    cwd: Cwd = None,
) -> int:
    """List the agreed definitions of figures and check them, with files also their columns.

    \b
    Exit codes:
      0 ok · 6 a definition is wrong · 2 a file can't be read
    """
    from ba_tui.features.data.analysis.errors import AnalysisError  # noqa: PLC0415 - --help must not wait for it
    from ba_tui.features.data.analysis.metrics.check import sql_trouble  # noqa: PLC0415
    from ba_tui.features.data.analysis.metrics.definitions import PROJECT  # noqa: PLC0415
    from ba_tui.permissions.trust.grants import Trust  # noqa: PLC0415

    folder = folder_of(cwd)
    known, root = agreed_metrics(folder).look(), project_root(folder)
    if (root / PROJECT).is_dir() and not Trust(places()).trusted(root):
        say(f"{PROJECT} is ignored: this folder is not trusted. Review it, then run ba trust.")
    troubles = {metric: metric.trouble or sql_trouble(metric) for metric in known}
    if files:
        try:
            with opened_data(folder, files) as data:
                for file in data.files:
                    data.run(data.engine.register(file, on_progress=data.line.show))
                for metric in [metric for metric, trouble in troubles.items() if not trouble]:
                    troubles[metric] = _columns_trouble(data, metric)
        except AnalysisError as error:
            return told(error)
    if json_:
        print_line(
            json.dumps([asdict(metric) | {"trouble": trouble} for metric, trouble in troubles.items()], indent=2)
        )
    else:
        for metric, trouble in troubles.items():
            if not trouble:
                print_line("\n".join(_lines(metric)))
    for trouble in dict.fromkeys(filter(None, troubles.values())):
        say(sentence(trouble))
    if not known and not json_:
        say(NONE)
    return FOUND if any(troubles.values()) else OK


def agreed_metrics(folder: Path) -> Metrics:
    """The definitions that count in ``folder``."""
    from ba_tui.features.data.analysis.metrics.definitions import Metrics, metric_folders  # noqa: PLC0415 - see metrics
    from ba_tui.permissions.trust.grants import Trust  # noqa: PLC0415

    where, root = places(), project_root(folder)
    return Metrics(metric_folders(where.config, root, lambda: Trust(where).trusted(root)))


def _columns_trouble(data: OpenedData, metric: Metric) -> str:
    """What the engine says of the definition, with the files as tables; empty where its table is not among them."""
    from ba_tui.features.data.analysis.errors import AnalysisError  # noqa: PLC0415 - see metrics
    from ba_tui.features.data.analysis.metrics.use import as_table  # noqa: PLC0415

    tables = {each.name.lower() for each in data.run(data.engine.catalogue()).datasets}
    if metric.name.lower() in tables:
        return f"{metric.shown}: {metric.name} is the name of a table too. Rename one"
    if not metric.source:
        return ""
    try:
        data.run(data.engine.query(f"FROM {as_table(metric, ())} LIMIT 0"))
    except AnalysisError as error:
        return f"{metric.shown}: {metric.name}: {with_hint(str(error), error.hint)}"
    return ""


def _lines(metric: Metric) -> Iterator[str]:
    yield metric.line
    yield f"  {one_line(metric.sql, 200)}{f' from {one_line(metric.source, 100)}' if metric.source else ''}"
    also = f"also {', '.join(metric.synonyms)}" if metric.synonyms else ""
    owner = f"owner {metric.owner}" if metric.owner else ""
    yield f"  {' · '.join(filter(None, (metric.description, also, owner, metric.shown)))}"
