"""The text of a PDF page by page, and which pages hold none.

In: {"path": "report.pdf"}; also pages ("1-3,7"), layout (true keeps columns apart by spaces: for tables), password,
output (a .txt file; a line "--- page N ---" before each page), overwrite.
"""

from __future__ import annotations

import sys

from documents import chosen, opened
from workspace import Args, option, run, shown, source, target


def text(args: Args) -> Args:
    path = source(args)
    reader = opened(path, args)
    mode = "layout" if option(args, "layout", bool, False) else "plain"
    pages = [
        (number, (reader.pages[number - 1].extract_text(extraction_mode=mode) or "").strip())
        for number in chosen(args, len(reader.pages))
    ]
    about = {key.lstrip("/").lower(): str(value)[:200] for key, value in (reader.metadata or {}).items()}
    bare = [number for number, words in pages if not words]
    said: Args = {"path": shown(path), "pages": len(reader.pages), "about": about, "without_text": bare}
    if bare:
        said["beware"] = f"{len(bare)} of {len(pages)} pages hold no text: scanned or drawn; look at them as pictures"
    if fields := {name: str(value) for name, value in (reader.get_form_text_fields() or {}).items()}:
        said["form_fields"] = fields
    if "output" in args:
        output = target(args)
        output.write_text("\n".join(f"--- page {number} ---\n{words}\n" for number, words in pages), "utf-8", "replace")
        return said | {"written": shown(output), "characters": sum(len(words) for _, words in pages)}
    return said | {"text": [{"page": number, "text": words} for number, words in pages]}


if __name__ == "__main__":
    sys.exit(run(text, "path pages layout password output overwrite"))
