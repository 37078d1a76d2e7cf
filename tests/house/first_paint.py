"""A terminal driver that notes, the moment the input is painted, which modules are loaded. Chosen by TEXTUAL_DRIVER.

What may be among them is judged in test_imports.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from textual.drivers.linux_driver import LinuxDriver

SIGN = "❯"


class NotingDriver(LinuxDriver):
    """Writes the note to $FIRST_PAINT_NOTE, once."""

    noted = False

    def write(self, data: str) -> None:
        if not self.noted and SIGN in data:
            self.noted = True
            note = Path(os.environ["FIRST_PAINT_NOTE"])
            half = note.with_suffix(".half")
            half.write_text("\n".join(sorted(sys.modules)), "utf-8")
            half.rename(note)
        super().write(data)
