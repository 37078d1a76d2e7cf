"""How a program is started inside a sandbox, as a value. What confines, and who may leave it, is decided elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ba_tui.core.profiles import WORKING, Profile
from ba_tui.core.values import frozen

CONFINED_VARIABLE = "BA_CONFINED"
INSIDE: Mapping[str, str] = MappingProxyType({CONFINED_VARIABLE: "1"})
"""What each program in the sandbox is told, so that another ba there can say why it saves nothing."""


@frozen
class Confinement:
    """``prefix`` goes before the program's words, ``environment`` over its own variables. ``separate``: it has process
    numbers of its own, which mean nothing outside. ``profile``: how far it may reach."""

    prefix: tuple[str, ...]
    environment: Mapping[str, str]
    separate: bool
    profile: Profile = WORKING

    @property
    def limits(self) -> dict[str, int]:
        """What the supervisor applies beside the limits of the program."""
        return {"setid": 0, **({"apart": 1} if self.separate else {})}

    def wrap(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Return ``argv`` as it is started inside the sandbox."""
        return (*self.prefix, *argv)
