"""Takes out of a line of the log what may be a secret. Coarse on purpose: a line can spare a word too many.

What surely is a secret, and of which kind, the permission room knows; its word is passed to the log as a value.
"""

from __future__ import annotations

import re

from ba_tui.core.text.patterns import regex

HIDDEN = "[redacted]"

_SHAPES = regex(
    r"""-----BEGIN[ A-Z]*PRIVATE\ KEY-----.*?(?:-----END[ A-Z]*PRIVATE\ KEY-----|\Z)
    | \b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{16,}
    | \b(?:gh[pousr]_|github_pat_|glpat-|hf_|xox[abposr]-|npm_|pypi-|dop_v1_|ya29\.)[A-Za-z0-9_.-]{10,}
    | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b
    | \bAIza[0-9A-Za-z_-]{30,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*""",
    re.VERBOSE | re.DOTALL,
)
_NAMED = regex(
    r"""(\b[A-Za-z0-9_-]{0,40}(?:api[-_]?key|secret|token|passw(?:or)?d|authorization|x-api-key)["']?\s{0,3}[:=]\s{0,3}["']?
        (?:bearer\s+|basic\s+)?)
        ([^\s"',;&}\]]{6,})""",
    re.VERBOSE | re.IGNORECASE,
)
_BEARER = regex(r"\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]{12,}", re.IGNORECASE)
_IN_ADDRESS = regex(r"(\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{0,200}:)[^\s/@]{1,500}(@)", re.IGNORECASE)


def redacted(text: str) -> str:
    """``text`` without API keys, tokens, private keys and passwords, as far as their shape gives them away."""
    text = _SHAPES.sub(HIDDEN, text)
    text = _IN_ADDRESS.sub(rf"\1{HIDDEN}\2", text)
    text = _BEARER.sub(rf"\1\2{HIDDEN}", text)
    return _NAMED.sub(rf"\1{HIDDEN}", text)
