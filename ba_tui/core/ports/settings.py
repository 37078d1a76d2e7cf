"""The settings as a form shows them: a line for each, and setting one for later starts. Values and a protocol only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ba_tui.core.values import frozen


@frozen
class SettingLine:
    """A setting as lists show it. ``key`` is dotted, ``source`` says where the value comes from (``default``, a file).

    ``choices``: the values that it may have, where these are few. ``editable``: it is one value, and not a list or a
    group; ``elsewhere`` says where it is changed when it is not.
    """

    key: str
    value: str
    source: str
    about: str = ""
    choices: tuple[str, ...] = ()
    editable: bool = True
    elsewhere: str = ""


class SettingsForm(Protocol):
    """All settings as they are for a folder. Reads and writes files: call it off the loop."""

    def lines(self) -> Sequence[SettingLine]:
        """In the order of the documentation, as they would be for a new start."""
        ...

    def problems(self) -> Sequence[str]:
        """What is wrong in the files, a line each."""
        ...

    def set(self, key: str, text: str) -> str:
        """Set ``key`` in the person's own file; says what that means now. Raises UsageError, StorageError."""
        ...

    def reset(self, key: str) -> str:
        """Take ``key`` out of the person's own file; says what that means now. Raises UsageError, StorageError."""
        ...
