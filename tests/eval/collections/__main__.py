"""``python -m tests.eval.collections FOLDER…``: what of public collections loads and works here, as a Markdown table.

Each folder is the checkout of one collection. Hooks of theirs run within bubblewrap, without a network and with nothing
to write; nothing else of theirs is run. A folder with several checkouts stands for each of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from ba_tui.assembly import tools_alone
from tests.eval.collections.found import KINDS, found_in
from tests.eval.collections.trials import Trials, Tried

HEADER = """\
| collection | kind | found | loaded | works | with parts named | refused |
|---|---|---:|---:|---:|---:|---:|"""


def main() -> int:
    """Print the table of the collections that the flags name."""
    flags = argparse.ArgumentParser(description="Count what of public collections loads and works here.")
    flags.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="a checkout, or a folder of checkouts")
    flags.add_argument("--json", action="store_true", help="print every item as JSON")
    flags.add_argument("--failures", action="store_true", help="list each item that is refused or does not work")
    flags.add_argument(
        "--named", action="store_true", help="list what is named as not supported, the most frequent first"
    )
    given = flags.parse_args()
    results: dict[str, list[Tried]] = {}
    with tempfile.TemporaryDirectory(prefix="ba-collections-") as scratch:
        os.environ["BA_HOME"] = scratch
        if not given.json:
            print(HEADER, flush=True)
        for checkout in _checkouts(given.folders):
            tried = results[checkout.name] = asyncio.run(tried_in(checkout, Path(scratch)))
            if not given.json:
                print("\n".join(rows(checkout.name.replace("+", "/"), tried)), flush=True)
    if given.json:
        print(json.dumps({name: [asdict(each) for each in tried] for name, tried in results.items()}, indent=2))
        return 0
    print("\n".join(rows("**all**", [each for tried in results.values() for each in tried])))
    for name, tried in results.items() if given.failures else ():
        for each in tried:
            if each.reason:
                print(f"{each.kind}: {name}/{each.name}: {each.reason}")
    if given.named:
        _print_named([each for tried in results.values() for each in tried])
    return 0


def _checkouts(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in map(Path.resolve, folders):
        inner = sorted(each for each in folder.iterdir() if each.is_dir())
        own = any(each.is_file() for each in folder.iterdir()) or any(each.name.startswith(".") for each in inner)
        yield from [folder] if own else inner


async def tried_in(checkout: Path, scratch: Path) -> list[Tried]:
    """How everything in ``checkout`` fares; ``scratch`` is a folder for what is written meanwhile."""
    tools = tools_alone(scratch, {})
    trials = Trials(checkout, tools.registry.names(), scratch)
    try:
        return [each for item in found_in(checkout) for each in await trials.tried(item)]
    finally:
        tools.registry.close()


def rows(name: str, tried: Sequence[Tried]) -> Iterator[str]:
    """A row of the table for each kind that there is."""
    for kind in KINDS:
        items = [each for each in tried if each.kind == kind]
        if not items:
            continue
        loaded = sum(each.loaded for each in items)
        used = [each for each in items if each.works is not None]
        works = f"{sum(bool(each.works) for each in used)} of {len(used)}" if used else "–"
        named = sum(bool(each.unsupported) for each in items)
        refused = sum(not each.loaded and not each.unsupported for each in items)
        yield f"| {name} | {kind} | {len(items)} | {loaded} | {works} | {named} | {refused} |"


def _print_named(tried: Sequence[Tried]) -> None:
    counted = Counter((each.kind, part.partition(":")[0][:60]) for each in tried for part in each.unsupported)
    for (kind, part), count in counted.most_common(60):
        print(f"{count:>5}  {kind}: {part}")


if __name__ == "__main__":
    sys.exit(main())
