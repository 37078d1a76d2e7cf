"""JSON with comments and trailing commas, as editors and other assistants write their settings."""

from __future__ import annotations

import json
import re
from typing import Any

from ba_tui.core.text.patterns import regex

_TOKEN = regex(
    # Possessive throughout: a line of slashes can be taken apart into comments in too many ways.
    r'"(?:\\.|[^"\\])*+"|//[^\n]*+|/\*(?>.*?(?:\*/|\Z))|,(?=(?>\s++|//[^\n]*+|/\*(?>.*?\*/))*+[}\]])',
    re.DOTALL,
)


def read_jsonc(text: str) -> Any:
    """Parse ``text``. Raises ValueError, whose line and column are those of ``text``; RecursionError when too deep."""
    return json.loads(_TOKEN.sub(lambda found: _plain(found[0]), text.removeprefix("\ufeff")))


def _plain(token: str) -> str:
    """A string as it is; blanks for a comment or a comma, so that lines and columns stay."""
    if token.startswith('"'):
        return token
    return "".join("\n" if char == "\n" else " " for char in token)
