"""A provider of another assistant as one of ba's. Its key stays where it is: only the name of a variable is written."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from ba_tui.core.text.patterns import regex
from ba_tui.settings.migration.draft import Draft

BUILT_IN = frozenset({"anthropic", "openai", "ollama", "lmstudio", "llamacpp", "vllm", "bedrock", "vertex", "azure"})
"""Providers that ba has under the same name."""
_NAME = regex(r"[A-Za-z][\w-]*")
_VARIABLE = regex(r"[A-Za-z_]\w*")


def provider(draft: Draft, name: str, url: Any, variable: Any) -> None:
    """Write the address of a provider and the name of the variable that holds its key."""
    what = f"provider {name}"
    if not _NAME.fullmatch(name) or not isinstance(url, str):
        if name not in BUILT_IN or url is not None:
            draft.no(what, "it has no name or no address that ba could use")
        return
    parts = urlsplit(re.sub(r"[\s{}]", "", url))
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.query or "{" in url:
        draft.no(what, "its address has a key, a query or a variable in it: set it up with /setup")
        return
    if name not in BUILT_IN:
        draft.set(f"providers.{name}.kind", "openai", what)
    draft.set(f"providers.{name}.base_url", url, what)
    if isinstance(variable, str) and _VARIABLE.fullmatch(variable):
        draft.set(f"providers.{name}.api_key_env", variable, what)
        draft.note(what, "by hand", f"its key is read from {variable}: set it in your shell, or type /setup")
