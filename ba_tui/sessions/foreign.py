"""Makes text from models and tools fit for lists and exports: one line, without strings that look like keys."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable

_C1 = regex("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_SECRETS = {
    ("-----begin ",): regex(
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.DOTALL
    ),
    ("sk-", "sk_", "pk-", "pk_", "rk-", "rk_"): regex(r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}"),
    ("akia", "asia"): regex(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-"): regex(
        r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{16,})"
    ),
    ("xox", "xapp-"): regex(r"\b(?:xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,})"),
    ("aiza",): regex(r"\bAIza[A-Za-z0-9_-]{35}"),
    ("hf", "npm", "gsk", "r8", "dop_v1", "xai", "nvapi"): regex(
        r"\b(?:hf|npm|gsk|r8|dop_v1|xai|nvapi)[_-][A-Za-z0-9_-]{24,}"
    ),
    (
        *("ya29.", "hvs.", "dp.pt.", "sg.", "shpat_", "shpca_", "shppa_", "shpss_", "lin_api_", "ntn_", "atatt3"),
        *("pplx-", "figd_", "sntrys_", "sntryu_", "sbp_", "nrak-", "age-secret-key-1"),
    ): regex(
        r"\b(?:ya29\.|hvs\.|dp\.pt\.|SG\.|shp(?:at|ca|pa|ss)_|lin_api_|ntn_|ATATT3|pplx-|figd_|sntry[su]_|sbp_|NRAK-"
        r"|AGE-SECRET-KEY-1)[A-Za-z0-9._-]{20,}"
    ),
    ("dapi", "key-"): regex(r"\b(?:dapi|key-)[0-9a-f]{32}\b"),
    (":aa",): regex(r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}\b"),
    ("basic ",): regex(r"(?i)(?<=authorization: basic )[A-Za-z0-9+/=]{8,}"),
    ("pypi-",): regex(r"\bpypi-[A-Za-z0-9_-]{32,}"),
    ("eyj",): regex(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ("bearer ",): regex(r"(?i)(?<=\bbearer )[A-Za-z0-9._~+/=-]{16,}"),
    ("://",): regex(r"(?<=://)[^\s/:@]{1,256}:[^\s/@]{1,256}(?=@)"),
    ("api", "account", "private", "secret", "token", "passw"): regex(
        r"(?i)(?:(?:api|account|private)[_-]?key|secret(?:[_-]?(?:access[_-]?)?key)?|passw(?:or)?d"
        r"|(?:access|auth|api|refresh|bot)[_-]?token)"
        r"[\"']?\s{0,3}[=:]\s{0,3}[\"']?(?P<value>(?=[^\s\"']{0,80}\d)[A-Za-z0-9_~+/=.!@#$%^&*-]{8,})"
    ),
}
"""Patterns of secrets, by lower-case texts of which a match contains one: searching for these is a hundred times as
fast."""
_TELLING = regex(r"(?i)key|secret|token|passw")

REDACTED = "[redacted]"
_SEALED = {"image", "document", "thinking", "redacted_thinking"}
_AS_IT_IS = ("data", "signature")


def one_line(text: str, length: int = 200) -> str:
    """Return ``text`` as one line for a list, at most ``length`` characters."""
    line = paintable(" ".join(text[: length * 8].split()), newlines=False)
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def escaped(json_text: str) -> str:
    """Return JSON text with raw control characters written as escapes; its value stays the same."""
    return _C1.sub(lambda match: f"\\u{ord(match[0]):04x}", json_text)


def redacted(text: str) -> str:
    """Return ``text`` without strings that look like keys, tokens or passwords."""
    small = text.casefold()
    for signs, pattern in _SECRETS.items():
        if any(sign in small for sign in signs):
            text = pattern.sub(_blank, text)
    return text


def without_secrets(value: Any, hide: Callable[[str], str] = redacted) -> Any:
    """Return a JSON value with ``hide`` applied to each string; a field's name counts as the text before its value.

    Pictures and signatures of thinking are unchanged, since a change would invalidate them.
    """
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        kept = _AS_IT_IS if fields.get("type") in _SEALED else ()
        return {key: item if key in kept else _field(key, item, hide) for key, item in fields.items()}
    if isinstance(value, list | tuple):
        return [without_secrets(item, hide) for item in cast("list[Any]", value)]
    return value


def _field(key: str, value: Any, hide: Callable[[str], str]) -> Any:
    named = isinstance(value, str) and hide is not str and _TELLING.search(key)
    if named and redacted(f"{key}={value}") == f"{key}={REDACTED}":
        return REDACTED
    return without_secrets(value, hide)


def _blank(match: re.Match[str]) -> str:
    value = match.groupdict().get("value")
    return REDACTED if value is None else match[0][: -len(value)] + REDACTED
