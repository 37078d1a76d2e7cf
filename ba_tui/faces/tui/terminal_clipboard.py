"""How a terminal is asked for the picture in its clipboard, and what it answers (OSC 5522, kitty's protocol). Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from ba_tui.core.values import frozen

KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Best first."""


@frozen
class ClipboardPart:
    """One answer of the terminal about its clipboard (OSC 5522): its ``fields`` and what it carries, as it came."""

    fields: Mapping[str, str]
    payload: str = ""

    @property
    def last(self) -> bool:
        """Whether nothing comes behind it: all was sent, or it was refused."""
        return self.fields.get("status") not in {"OK", "DATA"}


def part_of(fields: str, payload: str) -> ClipboardPart:
    """Read ``type=read:status=DATA:mime=…`` and what stands behind it."""
    pairs = (each.partition("=") for each in fields.split(":"))
    return ClipboardPart({key: value for key, _, value in pairs}, payload)


def request() -> str:
    """What asks the terminal for a picture."""
    wanted = base64.b64encode(" ".join(KINDS).encode()).decode()
    return f"\x1b]5522;type=read;{wanted}\x1b\\"
