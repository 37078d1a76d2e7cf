"""Paint Markdown and source code as lines of a given width. The parser and lexers load on first use.

``Chunks`` cuts an answer into pieces as it streams in; each is parsed and painted alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.transcript.figure_marks import FigureRuns
from ba_tui.faces.tui.transcript.lines import Cell, PaintedLine, Segments, TableLayout, Unit, broken, table, wrapped
from ba_tui.faces.tui.transcript.palette import Palette

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from pygments.lexer import Lexer

    from ba_tui.faces.tui.transcript.lines import Paint, PreviewSpace

FENCE = regex(r"( *)(`{3,}|~{3,})[ \t]*([^\s`{]*)([^`\n]*)$")
HEADING = regex(r"#{1,6}(?:\s|$)")
ITEM = regex(r"(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
DEFINITION = regex(r" {0,3}\[[^\]]+\]:\s*\S")

CODE_LINES = 50
LIST_SIZE = 1_500
PARAGRAPH_SIZE = 8_000
TABLE_SIZE = 16_000


class MarkdownChunk(NamedTuple):
    """A piece of Markdown, or lines within a fence if ``language`` is not None. ``opens`` and ``closes``: the fence's
    own lines if this chunk has them. ``spaced``: whether a blank line precedes it, not if the last chunk was cut for
    its size.
    """

    text: str
    language: str | None = None
    opens: str = ""
    closes: str = ""
    spaced: bool = True


class Chunks:
    """Feed text, read ``done``, whose pieces never change again, and ``open``. Knows lines only."""

    def __init__(self) -> None:
        self.done: list[MarkdownChunk] = []
        self.definitions: list[str] = []
        self._lines: list[str] = []
        self._rest = ""
        self._size = 0
        self._spaced = True
        self._blank = False
        self._list = False
        self._fence = ""
        self._language: str | None = None
        self._opens = ""

    @property
    def open(self) -> MarkdownChunk | None:
        """The text that may still change."""
        text = "".join(self._lines) + self._rest
        if self._language is not None:
            return MarkdownChunk(text.removesuffix("\n"), self._language, self._opens, "", self._spaced)
        return MarkdownChunk(text, spaced=self._spaced) if text.strip() else None

    def feed(self, text: str) -> None:
        *whole, self._rest = (self._rest + text).split("\n")
        for line in whole:
            self._line(self._shortened(line.removesuffix("\r")))
        if len(self._rest) > 3 and self._rest[0].isalpha() and not self._fence:
            self._boundary(self._rest)
        self._rest = self._shortened(self._rest)

    def _shortened(self, line: str) -> str:
        """Return the rest of a long line, whose beginning is cut into pieces that are quick to paint."""
        if len(line) <= PARAGRAPH_SIZE:
            return line
        start = 0
        while len(line) - start > PARAGRAPH_SIZE:
            end = line.rfind(" ", start + PARAGRAPH_SIZE // 2, start + PARAGRAPH_SIZE) + 1 or start + PARAGRAPH_SIZE
            self._lines.append(line[start:end])
            self._emit()
            self._opens, self._spaced, start = "", False, end
        return line[start:]

    def finish(self) -> None:
        """Cut the rest, because no text follows."""
        if self._rest:
            self._line(self._rest)
            self._rest = ""
        self._emit()
        self._fence, self._language, self._opens = "", None, ""

    def _line(self, line: str) -> None:
        if self._fence:
            self._within(line)
            return
        if not line.strip():
            self._blank = self._blank or bool(self._lines)
            if self._lines and self._size <= TABLE_SIZE:
                self._add(line)
            return
        self._boundary(line)
        if fence := FENCE.match(line):
            self._enter(line, fence)
            return
        self._blank = False
        self._list = self._list or bool(ITEM.match(line))
        if line.lstrip().startswith("[") and DEFINITION.match(line):
            self.definitions.append(line)
        self._add(line)

    def _add(self, line: str) -> None:
        self._lines.append(line + "\n")
        self._size += len(line) + 1

    def _boundary(self, line: str) -> None:
        """Cut before ``line`` if the text before it can't change any more or is too long."""
        indented = line[0] in " \t"
        if not self._lines or (indented and self._size <= TABLE_SIZE):
            return
        item = bool(ITEM.match(line))
        spaced = True
        if HEADING.match(line) or FENCE.match(line) or (self._blank and not (item and self._list)):
            pass
        elif item and self._list and self._size > LIST_SIZE:
            spaced = self._blank
        elif self._size > (TABLE_SIZE if "|" in line else PARAGRAPH_SIZE):
            spaced = False
        else:
            return
        self._emit()
        self._spaced = spaced

    def _enter(self, line: str, fence: re.Match[str]) -> None:
        self._fence = fence[2]
        if fence[1]:
            self._add(line)
        else:
            self._language, self._opens = fence[3], line

    def _within(self, line: str) -> None:
        closes = line.strip()
        closing = closes.startswith(self._fence) and not closes.strip(self._fence[0])
        if self._language is None:
            self._add(line)
            if closing:
                self._fence = ""
            elif self._size > TABLE_SIZE:
                self._emit()
                self._spaced = False
        elif closing:
            self._emit(closes)
            self._fence, self._language, self._opens = "", None, ""
        else:
            self._add(line)
            if len(self._lines) >= CODE_LINES or self._size > PARAGRAPH_SIZE:
                self._emit()
                self._opens, self._spaced = "", False

    def _emit(self, closes: str = "") -> None:
        text = "".join(self._lines)
        if self._language is not None:
            if text or self._opens or closes:
                self.done.append(
                    MarkdownChunk(text.removesuffix("\n"), self._language, self._opens, closes, self._spaced)
                )
        elif text.strip():
            self.done.append(MarkdownChunk(text, spaced=self._spaced))
        self._lines, self._size = [], 0
        self._blank, self._list, self._spaced = False, False, True


LIMIT = 20_000
_ROLES = {
    "Token.Keyword.Constant": "number",
    "Token.Keyword": "keyword",
    "Token.Operator.Word": "keyword",
    "Token.Name.Tag": "keyword",
    "Token.Literal.String": "string",
    "Token.Literal.Number": "number",
    "Token.Comment": "comment",
    "Token.Name.Function": "function",
    "Token.Name.Class": "function",
    "Token.Name.Decorator": "function",
    "Token.Name.Builtin": "function",
    "Token.Name.Attribute": "function",
    "Token.Generic.Inserted": "added",
    "Token.Generic.Deleted": "removed",
    "Token.Generic.Heading": "function",
    "Token.Generic.Subheading": "comment",
}


@lru_cache(32)
def lexer(language: str) -> Lexer | None:
    """Return the lexer of a fence's info word; None if there is none."""
    from pygments import lexers  # noqa: PLC0415 - not before the first code block
    from pygments.util import ClassNotFound  # noqa: PLC0415 - same

    find = cast("Callable[..., Lexer]", lexers.get_lexer_by_name)
    try:
        return find(language.lower(), stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@lru_cache(512)
def _role(token: Any) -> str:
    while token:
        if role := _ROLES.get(str(token)):
            return role
        token = token.parent
    return "block"


def highlighted(code: str, language: str, palette: Palette) -> list[list[Segment]]:
    """Return ``code`` (paintable, tabs expanded) as lines of segments on the background of code blocks."""
    plain: Style = palette.block
    words = lexer(language) if language and len(code) <= LIMIT else None
    if words is None:
        return [[Segment(line, plain)] if line else [] for line in code.split("\n")]
    lines: list[list[Segment]] = [[]]
    for token, text in words.get_tokens(code):
        style = getattr(palette, _role(token))
        first, *others = text.split("\n")
        if first:
            lines[-1].append(Segment(first, style))
        lines += [[Segment(other, style)] if other else [] for other in others]
    return lines


MEASURE = 110
"""Prose is not set wider than this: longer lines are hard to read."""
LONGEST_LINK = 2_000
HREF = "href"
"""The key in the meta of a style for the address of a link that is not of the web."""
_TASK = regex(r"\[([ xX])\] ")
_ADDRESS = regex(r"(?:https?://)?(?:www\.)?((?:[\w-]+\.)+[a-z]{2,})(?:[/:?#]|$)", re.IGNORECASE)
_DISGUISED = regex(
    r"[a-z]+://(?:[^/?#]*(?:[@%\\]|xn--|[^\x00-\x7f])|\[|(?:0x)?\d[0-9a-fx.]*(?:[/:?#]|$))", re.IGNORECASE
)
"""Matches deceptive hosts (after a user name, in foreign letters, a number), which are always shown."""


@cache
def parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - not before the first answer

    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def warm() -> None:
    """Load ahead, off the loop, what the first answer needs."""
    parser().parse("x")
    highlighted("x", "python", Palette())


@lru_cache(16)
def _references(definitions: tuple[str, ...]) -> Mapping[str, object]:
    """Return the addresses of reference links that the text defines."""
    found: dict[str, dict[str, object]] = {"references": {}}
    parser().parse("\n\n".join(definitions), found)
    return found["references"]


def painted(
    chunk: MarkdownChunk,
    width: int,
    palette: Palette,
    definitions: Sequence[str] = (),
    unsourced: frozenset[int] | None = None,
) -> list[PaintedLine]:
    """Return the lines of one piece, without a blank line above. ``unsourced``: see ``FigureRuns``."""
    if chunk.language is not None:
        return _code(chunk, width, palette)
    return _Page(paintable(chunk.text), width, palette, unsourced).lines(definitions)


def _code(chunk: MarkdownChunk, width: int, palette: Palette, lead: Segments = ()) -> list[PaintedLine]:
    """Return a code block on its own ground: the language on top, long lines cut hard, tabs as the source has them."""
    edge = Segment(" ", palette.block)
    gutter = (*lead, edge)
    room = max(8, width - 2 - sum(segment.cell_length for segment in lead))
    lines: list[PaintedLine] = []
    if chunk.opens:
        label = paintable(chunk.language or "code", newlines=False)[:room]
        lines.append(
            PaintedLine((Segment(label, palette.label),), gutter, Unit(chunk.opens, opens=True), fill=palette.block)
        )
    source = paintable(chunk.text)
    shown = "\n".join(line.expandtabs(4) for line in source.split("\n")) if "\t" in source else source
    raw = source.split("\n") if chunk.text or not chunk.opens else []
    for text, runs in zip(raw, highlighted(shown, chunk.language or "", palette), strict=False):
        rows = wrapped(runs, room, hard=True)
        unit = Unit(text, len(rows)) if len(rows) > 1 or "\t" in text else None
        lines += [PaintedLine(segments, gutter, unit, glue, palette.block) for segments, glue in rows]
    if chunk.closes and lines:
        lines[-1] = lines[-1]._replace(closes=chunk.closes)
    return lines


@dataclass(slots=True)
class _Lead:
    """The prefix of the lines of a list item or a quote: ``first`` once, then ``rest``."""

    first: Segment | None
    rest: Segment


class _Page:
    """One parse: walks the tokens once and gathers lines."""

    def __init__(self, source: str, width: int, palette: Palette, unsourced: frozenset[int] | None) -> None:
        self.figures = FigureRuns(palette, unsourced)
        self.source = self.figures.without(source).split("\n")
        self.text = source
        self.width = width
        self.palette = palette
        self.out: list[PaintedLine] = []
        self.leads: list[_Lead] = []
        self.lists: list[list[int]] = []
        self.tight = True
        self.base = palette.text

    def lines(self, definitions: Sequence[str] = ()) -> list[PaintedLine]:
        text = self.text
        known = {"references": dict(_references(tuple(definitions)))} if definitions and "[" in text else None
        tokens = parser().parse(text, known)
        at = 0
        while at < len(tokens):
            at = self._block(tokens, at)
        return self.out

    def _block(self, tokens: Sequence[Token], at: int) -> int:
        token = tokens[at]
        match token.type:
            case "paragraph_open":
                self._paragraph(tokens[at + 1], self.base, tight=token.hidden)
                return at + 3
            case "heading_open":
                style = self.palette.title if token.tag in ("h1", "h2") else self.palette.heading
                self._paragraph(tokens[at + 1], style)
                return at + 3
            case "fence" | "code_block":
                self._fence(token)
            case "html_block":
                self._plain(token)
            case "hr":
                self._gap()
                rule = self.palette.glyphs.rule * min(self._room(), MEASURE)
                self._line((Segment(rule, self.palette.rule),), Unit(self._lines_of(token)))
            case "table_open":
                return self._table(tokens, at)
            case _:
                self._container(token)
        return at + 1

    def _container(self, token: Token) -> None:
        glyphs = self.palette.glyphs
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                if not self.lists:
                    self._gap()
                start = token.attrGet("start")
                self.lists.append([int(start) if start is not None else 1, token.type == "ordered_list_open"])
            case "bullet_list_close" | "ordered_list_close":
                self.lists.pop()
            case "list_item_open":
                number, ordered = self.lists[-1]
                self.lists[-1][0] += 1
                sign = f"{number}." if ordered else glyphs.bullets[(len(self.lists) - 1) % len(glyphs.bullets)]
                self.leads.append(
                    _Lead(Segment(sign + " ", self.palette.dim), Segment(" " * (len(sign) + 1), self.palette.text))
                )
            case "blockquote_open":
                self._gap()
                bar = Segment(glyphs.bar + " ", self.palette.rule)
                self.leads.append(_Lead(bar, bar))
                self.base = self.palette.quote
            case "list_item_close":
                self._spend()
                self.leads.pop()
            case "blockquote_close":
                self.leads.pop()
                self.base = self.palette.text
            case _:
                pass

    def _spend(self) -> None:
        """Show the sign of an item without text."""
        if self.leads and self.leads[-1].first is not None:
            self._line((), None)

    def _gap(self, *, tight: bool = False) -> None:
        """Add a blank line above a block, unless it is the first one of its container."""
        fresh = bool(self.leads) and self.leads[-1].first is not None
        if tight or not self.out or (fresh and (len(self.leads) > 1 or not self.out[-1].segments)):
            return
        self.out.append(PaintedLine(gutter=tuple(lead.rest for lead in self.leads if lead.first is None)))

    def _gutter(self) -> Segments:
        gutter: list[Segment] = []
        for lead in self.leads:
            gutter.append(lead.first or lead.rest)
            lead.first = None
        return tuple(gutter)

    def _line(self, segments: Segments, unit: Unit | None, glue: str = "\n") -> None:
        self.out.append(PaintedLine(segments, self._gutter(), unit, glue))

    def _room(self) -> int:
        return max(8, self.width - sum(cell_len(lead.rest.text) for lead in self.leads))

    def _lines_of(self, token: Token) -> str:
        first, last = token.map or (0, 0)
        return "\n".join(self.source[first:last]).rstrip()

    def _paragraph(self, inline: Token, style: Style, *, tight: bool = False) -> None:
        self._gap(tight=tight)
        runs = self._inline(inline, style)
        if runs and self.leads and self.leads[-1].first is not None and (task := _TASK.match(runs[0].text)):
            glyphs = self.palette.glyphs
            sign = (glyphs.todo if task[1] == " " else glyphs.done) + " "
            self.leads[-1] = _Lead(Segment(sign, self.palette.dim), Segment(" " * cell_len(sign), self.palette.text))
            runs[0] = Segment(runs[0].text[task.end() :], runs[0].style)
        room = min(self._room(), MEASURE)
        rows = [row for line in broken(runs) for row in wrapped(line, room)]
        unit = Unit(self._lines_of(inline), len(rows))
        for segments, glue in rows:
            self._line(segments, unit, glue)

    def _plain(self, token: Token) -> None:
        """Show HTML as source text."""
        self._gap()
        content = paintable(self.figures.without(token.content).rstrip("\n")).expandtabs(4)
        rows = [row for line in broken([Segment(content, self.palette.dim)]) for row in wrapped(line, self._room())]
        unit = Unit(self._lines_of(token), len(rows))
        for segments, glue in rows:
            self._line(segments, unit, glue)

    def _fence(self, token: Token) -> None:
        self._gap()
        marker = token.markup or "```"
        language = (token.info.split() or [""])[0]
        chunk = MarkdownChunk(
            self.figures.without(token.content).removesuffix("\n"), language, f"{marker}{token.info}", marker
        )
        first = self._gutter()
        rest = tuple(lead.rest for lead in self.leads)
        for at, line in enumerate(_code(chunk, self.width, self.palette, rest)):
            self.out.append(line if at else line._replace(gutter=(*first, line.gutter[-1])))

    def _table(self, tokens: Sequence[Token], at: int) -> int:
        self._gap()
        first, last = tokens[at].map or (0, 0)
        rows: list[list[Cell]] = []
        aligns: list[str] = []
        while tokens[at].type != "table_close":
            token = tokens[at]
            if token.type == "tr_open":
                rows.append([])
            elif token.type in ("th_open", "td_open"):
                head = token.type == "th_open"
                if head:
                    aligns.append(str(token.attrGet("style") or "").removeprefix("text-align:"))
                style = self.palette.heading if head else self.base
                rows[-1].append([_spaced(run) for run in self._inline(tokens[at + 1], style)])
            at += 1
        sources = self.source[first:last] + [""] * (len(rows) + 1)
        for line in table(TableLayout(rows, aligns, sources), self._room(), self.palette):
            self.out.append(line._replace(gutter=self._gutter()))
        return at + 1

    def _inline(self, token: Token, base: Style) -> list[Segment]:
        """Return the words of a paragraph in their styles; ``base`` carries the ground."""
        palette = self.palette
        over = {"strong": palette.strong, "em": palette.emphasis, "s": palette.strike}
        styles = [base]
        runs: list[Segment] = []
        link = ("", 0)
        for child in token.children or ():
            kind = child.type
            if kind == "text":
                if child.content:
                    runs += self.figures.of(paintable(child.content).expandtabs(4), styles[-1])
            elif kind == "code_inline":
                runs.append(
                    Segment(paintable(self.figures.without(child.content), newlines=False), styles[-1] + palette.code)
                )
            elif kind in ("softbreak", "hardbreak"):
                runs.append(Segment("\n", styles[-1]))
            elif kind == "link_open":
                link = (paintable(str(child.attrGet("href") or ""), newlines=False), len(runs))
                styles.append(styles[-1] + palette.link + _followed(link[0]))
            elif kind == "link_close":
                styles.pop()
                runs += self._destination(link[0], "".join(run.text for run in runs[link[1] :]))
            elif kind == "image":
                alt = paintable(self.figures.without(child.content), newlines=False) or "image"
                url = paintable(str(child.attrGet("src") or ""), newlines=False)
                runs += [Segment(f"[{alt}]", styles[-1]), Segment(f" ({url})", palette.dim)]
            elif kind.endswith("_open"):
                styles.append(styles[-1] + over.get(kind.removesuffix("_open"), Style.null()))
            elif kind.endswith("_close"):
                styles.pop()
            else:
                runs.append(Segment(paintable(self.figures.without(child.content)), styles[-1]))
        return runs

    def _destination(self, url: str, text: str) -> list[Segment]:
        """Return where a link really goes, when its text reads like another address or the address is no web page."""
        claims, goes = _ADDRESS.match(text.strip()), _ADDRESS.match(url)
        deceptive = claims is not None and (goes is None or claims[1].lower() != goes[1].lower())
        odd = ":" in url.split("/")[0] and not url.lower().startswith(("http:", "https:", "mailto:"))
        odd = odd or _DISGUISED.match(url) is not None
        return [Segment(f" ({url})", self.palette.dim)] if deceptive or odd else []


def _followed(url: str) -> Style:
    """Return a link style that the terminal can follow for web addresses, else metadata with the address."""
    if len(url) > LONGEST_LINK or not url.isprintable():
        return Style.null()
    return Style(link=url) if url.lower().startswith(("http:", "https:", "mailto:")) else Style.from_meta({HREF: url})


def _spaced(run: Segment) -> Segment:
    return Segment(run.text.replace("\n", " "), run.style) if "\n" in run.text else run


def plain(text: str, width: int, style: Style) -> list[PaintedLine]:
    """Return words as they are: wrapped, never read as Markdown."""
    lines: list[PaintedLine] = []
    for line in paintable(text).expandtabs(4).split("\n"):
        lines += [
            PaintedLine(segments, glue=glue)
            for segments, glue in wrapped([Segment(line, style)] if line else [], width)
        ]
    return lines


def plain_lines(space: PreviewSpace, style: Style) -> Paint:
    """Return a function that wraps each line of a text separately."""
    return lambda text: [plain(line, space.width, style) for line in text.split("\n")]
