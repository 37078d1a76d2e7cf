"""The HTML export: one page that needs nothing else, runs nothing and loads nothing, whatever was said in it."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ba_tui.core.events import (
    Compressed,
    Event,
    MessageDone,
    Notice,
    Rewound,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import Document, Image, Message, Text, ToolUse, user
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.results import CommandText, Diff, ToolResult, failure
from ba_tui.sessions.exports.transcripts import exporter
from tests.sessions.shelf import turn

INFO = SessionInfo("20261121-120000-ab12", "Fix the parser", Path("/srv/project"), 0.0, 60.0, 1, 1.0, "test/model")
PLAIN = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "h4", "h5", "h6", "p", "div", "b", "code"),
    *("pre", "span", "details", "summary", "ul", "ol", "li", "em", "strong", "blockquote", "table", "thead", "tbody"),
    *("tr", "th", "td", "a", "img", "br", "hr", "s"),
}
KNOWN = {"class", "href", "rel", "src", "alt", "charset", "http-equiv", "content", "name", "lang", "start", "style"}


class Tags(HTMLParser):
    """What a browser would see: tags with attributes, and the words."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data

    def check(self) -> None:
        for tag, attributes in self.tags:
            assert tag in PLAIN
            assert set(attributes) <= KNOWN
            assert (attributes.get("href") or "https://").lower().startswith(("http://", "https://"))
            assert (attributes.get("src") or "data:image/").startswith("data:image/")
            assert tag != "meta" or attributes.get("http-equiv") in {None, "Content-Security-Policy"}


def page(*events: Event, title: str = INFO.title) -> Tags:
    return Tags("".join(exporter("html")(replace(INFO, title=title), events)))


def answered(words: str) -> Event:
    return MessageDone(Message("assistant", (Text(words),)))


def test_a_page_shows_what_was_said_called_and_changed() -> None:
    call, edit = ToolUse("c", "shell", {"command": "ls"}), ToolUse("e", "edit_file", {})
    seen = page(
        TurnStarted(
            Message("user", (Text("Look & see"), Image("image/png", "iVBORw0KGgo="), Document("a/pdf", "x", "d")))
        ),
        answered("**Done**, see [the site](https://example.org/?a=1&b=2):\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"),
        ToolStarted(call, "ls -la"),
        ToolFinished("c", ToolResult("cut", CommandText("ls", output="a.py\nb.py"), summary="2 lines")),
        ToolStarted(edit, "a.py"),
        ToolFinished("e", ToolResult("done", Diff("a.py", "x = 1\n", "x = 2\n"))),
        ToolFinished("none", failure("timeout", "too slow")),
        TurnEnded("cancelled"),
    )
    seen.check()
    for words in ("Look & see", "2 lines", "a.py\nb.py", "-x = 1", "+x = 2", "too slow", "Stopped by the user."):
        assert words in seen.words
    tags = dict(seen.tags)
    assert tags["img"]["src"] == "data:image/png;base64,iVBORw0KGgo="
    assert tags["a"]["href"] == "https://example.org/?a=1&b=2"
    assert {"table", "strong", "details"} <= {tag for tag, _ in seen.tags}
    assert "default-src 'none'" in str(seen.tags)


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<iframe src=//evil.example></iframe><svg onload=alert(1)>",
    "[x](javascript:alert(1)) [y](data:text/html;base64,AAAA) [z](file:///etc/passwd) [w](//evil.example)",
    "![x](https://evil.example/pixel.png) ![y](javascript:alert(1)) ![z](data:image/svg+xml;base64,AAAA)",
    "[a]: javascript:alert(1)\n[x][a] <javascript:alert(1)> <https://good.example/'onclick=alert(1)>",
    "</style><script>x</script></title></pre></details>",
    '```html"><script>\n</code></pre><script>alert(1)</script>\n```',
    "&lt;script&gt; &#60;script&#62;",
    '[x](https://good.example/"onmouseover="alert(1) "title\\" onclick=\\"x")',
]


@pytest.mark.parametrize("words", HOSTILE)
def test_nothing_that_is_said_becomes_part_of_the_page(words: str) -> None:
    call = ToolUse(words, words, {words: words})
    seen = page(
        TurnStarted(user(words)),
        answered(words),
        ToolStarted(call, words),
        ToolFinished(words, ToolResult(words, Diff(words, words, "x"), summary=words)),
        ToolStarted(replace(call, id="2"), words, agent=f"main/{words}"),
        ToolFinished("2", ToolResult(words, attachments=(Image("image/png", words),)), agent=f"main/{words}"),
        TurnStarted(Message("user", (Image(words, "AAAA"), Image("", url=words), Image("image/svg+xml", "AAAA")))),
        Notice(words, "warning"),
        title=words,
    )
    seen.check()
    assert not any(tag == "img" for tag, _ in seen.tags)


@pytest.mark.parametrize("format", ["md", "html"])
def test_compressions_and_rewinds_are_told_and_the_originals_stay(format: str) -> None:
    events = [
        *turn("one"),
        Compressed((user("Summary"),), "extract", 80_000, 30_000),
        *turn("two"),
        Compressed((user("one"),), "undo", 1, 2),
        *turn("three"),
        Rewound(turns=2),
    ]
    text = "".join(exporter(format)(INFO, events))
    assert "Compressed (extract, 80,000 to 30,000 tokens)" in text
    assert "The last compression was undone" in text
    assert "Rewound to an earlier turn" in text
    assert "About one." in text
    assert "About two." in text
    assert "About three." not in text
    assert "Summary" not in text


def test_a_long_output_is_cut_and_says_so() -> None:
    seen = page(TurnStarted(user("x")), ToolFinished("c", ToolResult("y" * 50_000)))
    assert "[… 30,000 characters left out here …]" in seen.words
