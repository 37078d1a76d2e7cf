"""The names that a wrong name may have meant, as a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MOST_NAMES = 12


def nearest_names(name: str, known: Iterable[str], label: str) -> str:
    """Return a hint with the names most like ``name``, else with the first of them. ``label``: "Tables", "Columns"."""
    names = list(dict.fromkeys(known))
    folded = {each.lower(): each for each in names}
    close = [folded[each] for each in get_close_matches(name.lower(), folded, 3, 0.5)]
    close += [each for each in names if name.lower() in each.lower() and each not in close]
    if close:
        return f"Did you mean {' or '.join(close[:3])}?"
    if not names:
        return f"No {label.lower()} are known yet."
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{label}: {', '.join(names[:MOST_NAMES])}{more}."
