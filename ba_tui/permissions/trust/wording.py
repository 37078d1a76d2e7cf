"""What the person is told about a folder that they do not trust."""

from __future__ import annotations

from ba_tui.core.events import Notice
from ba_tui.core.ports.trust import TrustState


def untrusted_notices(seen: TrustState, *, attended: bool) -> list[Notice]:
    """What the folder brings and what stays off until the person trusts it."""
    if seen.state == "trusted":
        return []
    brought = ", ".join("context files" if part.kind == "context" else part.kind for part in seen.holds)
    untold = [name for part in seen.holds if part.kind == "context" for name in part.names]
    files = f" Models don't see {'; '.join(untold)}." if untold else ""
    if seen.trouble:
        return [Notice(seen.trouble, "warning", "Until then the folder can't be trusted.")]
    if attended:
        off = f" What it brings is off: {brought}.{files}" if brought else ""
        return [Notice(f"This folder is not trusted: ba only reads here.{off}", "warning", "/trust changes that.")]
    if not brought:
        return []
    text = f"This folder is not trusted, so what it brings is off: {brought}.{files}"
    return [Notice(text, "info", "Review it, then run `ba trust`, or start with --trust. See ba guide trust.")]
