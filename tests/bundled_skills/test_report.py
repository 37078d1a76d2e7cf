"""build.py: one file that needs nothing else, figures that were given, and text that is never run."""

from __future__ import annotations

import hashlib
import re

from tests.bundled_skills.bench import Bench

BUILD = "report/build.py"
TEXT = """\
# Sales <script>alert(1)</script>

North sold **{{total}} EUR**, `a < b`, [here](https://x.org/a_(b)), [bad](javascript:alert(1)); typed 1,234.5 in 2024.

- one
- two
  - deep *x*

1. first
2. second

![By region](c.svg)

| region | amount |
|---|---|
| N \\| M | 1,200.50 |

> quoted

```sql
select <x>
```

## Next
## Next
"""


def test_it_is_whole_and_safe(bench: Bench) -> None:
    bench.write("r.md", TEXT)
    bench.write("c.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>")
    bench.write("s.csv", "a\n1\n")
    args = {"path": "r.md", "output": "o/r.html", "figures": {"total": "49.50", "left": 2}, "sources": ["s.csv"]}
    said = bench.run(BUILD, {**args, "contents": True})
    page = (bench.folder / "o/r.html").read_text("utf-8")
    assert "<script" not in page
    assert 'href="javascript' not in page
    assert re.findall(r'(?:src|href)="(?!data:|#|https://x\.org/a_\(b\))', page) == []
    for part in (
        "<strong>49.50 EUR</strong>",
        "<code>a &lt; b</code>",
        "<li>two<ul>\n<li>deep <em>x</em></li>\n</ul></li>",
        "<figcaption>By region</figcaption></figure>",
        '<td>N | M</td><td class="n">1,200.50</td>',
        "<pre><code>select &lt;x&gt;</code></pre>",
        '<li><a href="#next-2">Next</a></li>',
    ):
        assert part in page
    digest = hashlib.sha256(b"a\n1\n").hexdigest()
    assert (said["sources"][0]["sha256"], said["pictures"], said["figures"]) == (digest, ["c.svg"], 1)
    assert digest[:16] in page
    assert said["beware"] == [
        "figures never used: left",
        "numbers typed by hand, to compare with their source: 1,234.5, 1,200.50",
    ]


def test_what_is_missing_stops_it(bench: Bench) -> None:
    bench.write("r.md", "{{total}} and ![x](https://x.org/y.png)")
    assert "no figure for total" in bench.refused(BUILD, {"path": "r.md", "output": "r.html"})
    figures = {"total": 1}
    assert "only files of the workspace" in bench.refused(
        BUILD, {"path": "r.md", "output": "r.html", "figures": figures}
    )
    bench.write("p.md", "![x](y.exe)")
    assert "not one of" in bench.refused(BUILD, {"path": "p.md", "output": "r.html"})
    assert not (bench.folder / "r.html").exists()
