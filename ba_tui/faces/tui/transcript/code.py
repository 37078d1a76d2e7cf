"""Source code in colours: pygments' tokens in the palette's styles, line by line. The lexers load on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from rich.segment import Segment
from rich.style import Style

from ba_tui.faces.tui.transcript.palette import Palette

if TYPE_CHECKING:
    from pygments.lexer import Lexer

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
    """The lexer of a fence's info word, or None when there is none."""
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
    """``code`` (paintable, tabs expanded) as lines of segments on the ground of code blocks."""
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
