"""What a program may use, as rlimits. They hold inside the sandbox and outside it.

The supervisor sets them; which settings they come from is the assembly's affair.
"""

from __future__ import annotations

import os

from ba_tui.core.values import frozen

GIGABYTE = 1_000_000_000


@frozen
class ProcessLimits:
    """None for no limit: bytes of memory, bytes of one file, processes and threads."""

    memory: int | None = 8 * GIGABYTE
    file_size: int | None = 10 * GIGABYTE
    processes: int | None = 1024

    def for_seconds(self, seconds: float | None = None) -> dict[str, int]:
        """As rlimits. Processor time counts on all cores, so it is bounded by the time limit times these."""
        given = {"data": self.memory, "fsize": self.file_size, "nproc": self.processes}
        cpu = {} if seconds is None else {"cpu": (int(seconds) + 1) * (os.cpu_count() or 1)}
        return {**cpu, **{name: value for name, value in given.items() if value is not None}}
