"""Pages into a new PDF: some of one file, several files joined, one file cut up, pages turned.

In: {"do": "extract", "path": "in.pdf", "pages": "2-5", "output": "out.pdf"}
{"do": "merge", "paths": ["a.pdf", "b.pdf"], "output": "all.pdf"}
{"do": "split", "path": "in.pdf", "every": 1, "folder": "parts"}
{"do": "rotate", "path": "in.pdf", "pages": "1", "degrees": 90, "output": "out.pdf"}
Also password, overwrite. The files read are never changed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from documents import chosen, opened
from pypdf import PdfReader, PdfWriter
from workspace import Args, Refused, option, run, shown, source, target

KNOWN = "do path paths pages every degrees folder output password overwrite"


def pages(args: Args) -> Args:
    doing = {"extract": extract, "merge": merge, "split": split, "rotate": rotate}
    if (name := option(args, "do", str, "")) not in doing:
        raise Refused(f'"do" is one of {", ".join(doing)}')
    return doing[name](args)


def extract(args: Args) -> Args:
    reader = opened(source(args), args)
    numbers = chosen(args, len(reader.pages))
    return saved([(reader, number) for number in numbers], target(args))


def merge(args: Args) -> Args:
    names = option(args, "paths", list, [])
    if len(names) < 2:
        raise Refused('"paths" names two or more files')
    readers = [opened(source({"path": name}), args) for name in names]
    return saved([(reader, number) for reader in readers for number in range(1, len(reader.pages) + 1)], target(args))


def split(args: Args) -> Args:
    path, every = source(args), option(args, "every", int, 1)
    if every < 1:
        raise Refused('"every" is the number of pages for each file, 1 or more')
    reader, folder = opened(path, args), option(args, "folder", str, path.stem)
    numbers = chosen(args, len(reader.pages))
    parts = [numbers[start : start + every] for start in range(0, len(numbers), every)]
    if len(parts) > 500:
        raise Refused(f"that would make {len(parts)} files: raise every, or give pages")
    places = [target({**args, "output": f"{folder}/{path.stem}-{part[0]:03}.pdf"}) for part in parts]
    done = [saved([(reader, number) for number in part], place) for part, place in zip(parts, places, strict=True)]
    return {"written": [one["written"] for one in done], "pages": len(numbers)}


def rotate(args: Args) -> Args:
    reader, degrees = opened(source(args), args), option(args, "degrees", int, 90)
    if degrees % 90:
        raise Refused('"degrees" is 90, 180 or 270')
    turned = set(chosen(args, len(reader.pages)))
    everything = [(reader, number) for number in range(1, len(reader.pages) + 1)]
    return saved(everything, target(args), dict.fromkeys(turned, degrees)) | {"turned": sorted(turned)}


def saved(wanted: list[tuple[PdfReader, int]], path: Path, turns: dict[int, int] | None = None) -> Args:
    writer = PdfWriter()
    for reader, number in wanted:
        page = writer.add_page(reader.pages[number - 1])
        if degrees := (turns or {}).get(number):
            page.rotate(degrees)
    with path.open("wb") as file:
        writer.write(file)
    return {"written": shown(path), "pages": len(wanted)}


if __name__ == "__main__":
    sys.exit(run(pages, KNOWN))
