"""``ba data check``: what is wrong with data files, for people and scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ba_tui.cli.config import Cwd, folder_of, print_line, say
from ba_tui.core.ports.traps import ALL, KINDS
from ba_tui.core.text.wording import count, one_line
from ba_tui.features.data.cli.opened import OK, USAGE, opened_data, told

if TYPE_CHECKING:
    from ba_tui.core.ports.tables import DatasetProfile

FOUND = 6
LONGEST = 2_000


def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE|-", help="Data files or globs; - reads CSV from stdin.")],
    part: Annotated[str, typer.Option(metavar="NAME", help="Read only this sheet or table of each file.")] = "",
    mute: Annotated[
        list[str] | None, typer.Option("--mute", metavar="KIND", help="Leave out this kind of finding; repeatable.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="As a JSON list with the proof of each finding.")] = False,
    cwd: Cwd = None,
) -> int:
    """Check data files for traps and defects: totals among rows, placeholders, gaps, repeated keys, broken references.

    Each finding comes with the SQL that proves it. `ba guide traps` explains the kinds.

    \b
    Exit codes:
      0 nothing was found · 1 an option is wrong · 2 a file can't be read
      3 a limit was reached · 4 a file may not be read
      6 something was found · 130 interrupted
    """
    from ba_tui.features.data.analysis.errors import AnalysisError  # noqa: PLC0415 - --help must not wait for it

    left_out = frozenset(mute or ())
    if unknown := left_out - {*KINDS, ALL}:
        say(f"There is no kind {min(unknown)}. Kinds are {', '.join(KINDS)}.")
        return USAGE
    codes: list[int] = []
    profiles: list[DatasetProfile] = []
    with opened_data(folder_of(cwd), files) as data:
        names: list[str] = []
        for file in data.files:
            try:
                made = data.run(data.engine.register(file, part=part, on_progress=data.line.show))
                names += [each.name for each in made]
            except AnalysisError as error:
                codes.append(told(error))
        for name in dict.fromkeys(names):
            try:
                profiles.append(data.run(data.engine.profile(name, thorough=True, on_progress=data.line.show)))
            except AnalysisError as error:
                codes.append(told(error))
    found = [each for profile in profiles for each in profile.told if each.trap not in left_out and ALL not in left_out]
    if json_:
        shown = ("dataset", "trap", "column", "message", "proof")
        print_line(json.dumps([{key: getattr(each, key) for key in shown} for each in found], indent=2))
    else:
        _print(profiles, [(each.dataset, each.trap, each.message, each.proof) for each in found])
    return max(codes, default=FOUND if found else OK)


def _print(profiles: Sequence[DatasetProfile], found: Sequence[tuple[str, str, str, str]]) -> None:
    for profile in profiles:
        own = [each for each in found if each[0] == profile.dataset.name]
        size = count(profile.dataset.rows, "row")
        print_line(f"{profile.dataset.name}: {size}, {count(len(own), 'finding') if own else 'nothing was found'}")
        for _, trap, message, proof in own:
            print_line(f"  {trap}: {one_line(message, LONGEST)}\n    {one_line(proof, LONGEST)}")
        hidden = sum(each.muted for each in profile.findings)
        if hidden:
            say(f"{profile.dataset.name}: {count(hidden, 'muted finding')} not shown.")
        for note in profile.notes:
            say(note)
