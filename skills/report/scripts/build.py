"""A report as one HTML file that needs nothing else: text, computed figures, charts and sources in it.

In: {"path": "report.md", "output": "report.html"}; also title, figures ({"total": "1,234.50"}: fills {{total}} in the
text), sources (files whose size, date and hash are listed at the end), contents (true: a list of headings), overwrite.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from datetime import UTC, datetime
from html import escape

from prose import Prose
from workspace import Args, Refused, inside, option, run, shown, source, target

KNOWN = "path output title figures sources contents overwrite"
KINDS = {".svg": "svg+xml", ".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".gif": "gif", ".webp": "webp"}
LARGEST = 8_000_000
PLACE = re.compile(r"\{\{ *([\w.-]+) *\}\}")
STYLE = """
:root{color-scheme:light dark;--ink:#222;--paper:#fff;--line:#d0d0d0;--soft:#f4f4f4;--link:#0b57a4}
@media(prefers-color-scheme:dark){:root{--ink:#e8e8e8;--paper:#181818;--line:#444;--soft:#242424;--link:#8ab8f0}}
body{font:16px/1.55 system-ui,sans-serif;color:var(--ink);background:var(--paper)}
body{max-width:48rem;margin:2rem auto;padding:0 1rem}
h1,h2,h3{line-height:1.25;margin:1.6em 0 .5em}
h1{margin-top:0}
a{color:var(--link)}
table{border-collapse:collapse;display:block;overflow-x:auto;margin:1em 0}
th,td{border-bottom:1px solid var(--line);padding:.3em .8em;text-align:left}
.n{text-align:right;font-variant-numeric:tabular-nums}
img{max-width:100%;height:auto}
figure{margin:1.2em 0}
figcaption,.sources{font-size:.88em}
pre,code{background:var(--soft);font:.9em ui-monospace,monospace}
pre{padding:.8em;overflow-x:auto}
blockquote{border-left:3px solid var(--line);margin-left:0;padding-left:1em}
@media print{body{max-width:none;margin:0}h2,h3{break-after:avoid}table,figure,pre{break-inside:avoid}}
"""


def build(args: Args) -> Args:
    path = source(args)
    figures = option(args, "figures", dict, {})
    text, used = filled(path.read_text("utf-8-sig", "replace"), figures)
    embedded: list[str] = []
    prose = Prose(lambda name, about: picture(name, about, embedded))
    body = prose.html(text)
    title = option(args, "title", str, "") or next((words for _, _, words in prose.headings), path.stem)
    contents = listed(prose.headings) if option(args, "contents", bool, False) else ""
    sources, rows = origins([str(name) for name in option(args, "sources", list, [])])
    page = f"""<!doctype html>
<html><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{escape(title)}</title><style>{STYLE}</style></head>
<body>
{contents}{body}
{sources}</body></html>
"""
    output = target(args)
    output.write_text(page, "utf-8")
    unused = sorted(set(figures) - used)
    beware = [f"figures never used: {', '.join(unused)}"] if unused else []
    if loose := numbers_in(path.read_text("utf-8-sig", "replace")):
        beware.append(f"numbers typed by hand, to compare with their source: {', '.join(loose[:20])}")
    counts = {"bytes": len(page.encode()), "pictures": embedded, "figures": len(used), "headings": len(prose.headings)}
    return {"written": shown(output), **counts, "sources": rows, "beware": beware}


def filled(text: str, figures: Args) -> tuple[str, set[str]]:
    """Figures come from where they were computed, not from typing them again."""
    names = set(PLACE.findall(text))
    if absent := sorted(names - set(figures)):
        raise Refused(f"no figure for {', '.join(absent)}: give it under figures, from the result that computed it")
    plain = {name: value if isinstance(value, str) else json.dumps(value) for name, value in figures.items()}
    return PLACE.sub(lambda match: plain[match[1]], text), names


def numbers_in(text: str) -> list[str]:
    """Larger numbers in the prose that no figure fills; years, lists and code are none."""
    bare = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)|\{\{.*?\}\}|^#+[^\n]*$", " ", text, flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"(?<![\w.,/-])\d[\d,.]*\d(?:\s?%)?(?![\w/-])", bare)
    return [number for number in dict.fromkeys(found) if not re.fullmatch(r"(19|20)\d\d", number)]


def picture(name: str, about: str, embedded: list[str]) -> str:
    if "://" in name or name.startswith("data:"):
        raise Refused(
            f"picture {name[:80]}: only files of the workspace are put in; download it first if it may be used"
        )
    path = inside(name)
    kind = KINDS.get(path.suffix.lower())
    if not path.is_file() or kind is None:
        raise Refused(f"picture {name}: " + ("there is no such file" if kind else f"not one of {', '.join(KINDS)}"))
    if path.stat().st_size > LARGEST:
        raise Refused(f"picture {name} is larger than {LARGEST // 1_000_000} MB")
    embedded.append(shown(path))
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{escape(about)}" src="data:image/{kind};base64,{data}">'


def listed(headings: list[tuple[int, str, str]]) -> str:
    lines = [
        f'<li><a href="#{escape(id)}">{escape(words)}</a></li>' for level, id, words in headings if level in {2, 3}
    ]
    return "<nav><ul>\n" + "\n".join(lines) + "\n</ul></nav>\n"


def origins(names: list[str]) -> tuple[str, list[Args]]:
    rows: list[Args] = []
    for name in names:
        path = source({"path": name})
        facts = path.stat()
        changed = datetime.fromtimestamp(facts.st_mtime, UTC).strftime("%Y-%m-%d %H:%M UTC")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        rows.append({"path": shown(path), "bytes": facts.st_size, "changed": changed, "sha256": digest})
    if not rows:
        return "", rows
    cells = "\n".join(
        f'<tr><td>{escape(row["path"])}</td><td class="n">{row["bytes"]:,}</td><td>{row["changed"]}</td>'
        f"<td><code>{row['sha256'][:16]}</code></td></tr>"
        for row in rows
    )
    head = '<tr><th>File</th><th class="n">Bytes</th><th>Changed</th><th>SHA-256 begins</th></tr>'
    return f'<section class="sources"><h2>Sources</h2><table>{head}\n{cells}</table></section>\n', rows


if __name__ == "__main__":
    sys.exit(run(build, KNOWN))
