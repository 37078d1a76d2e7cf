"""``ba`` and ``python -m ba_tui``: answer ``--version`` without imports, hand over everything else."""

from __future__ import annotations

import gc
import os
import sys

from ba_tui import __version__

INTERRUPTED = 130
LAST = 2
"""The number of the last standard stream."""
START_OBJECTS = 150_000
"""Approximate number of permanent container objects after a start: modules, classes, functions."""


def main() -> int:
    """Return the exit code: 0 ok, 1 usage, 2 model or infrastructure, 3 limit, 4 denied, 130 interrupted, 129 and 143
    ended."""
    argv = sys.argv[1:]
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _open_streams()
    if argv in (["--version"], ["-V"], ["-v"]):
        return _written(f"ba {__version__}\n")
    try:
        # ``--version`` above needs none of these modules.
        from ba_tui.cli.streams import drop_lost_narration, tell_of_confinement  # noqa: PLC0415
        from ba_tui.processes.signals import run_in_order  # noqa: PLC0415

        _delay_collection()
        drop_lost_narration()
        tell_of_confinement()
        return run_in_order(lambda: _handed_over(argv))
    except KeyboardInterrupt:
        return INTERRUPTED


def _delay_collection() -> None:
    """Delay the first garbage collection until after the start, because it finds little but modules and costs 0.1 s."""
    gc.set_threshold(START_OBJECTS, 20, 20)
    gc.callbacks.append(_keep_start)


def _keep_start(phase: str, info: dict[str, int]) -> None:
    """At the first collection, freeze the objects of the start, so that later collections skip them. Later collections
    are rarer than by default, which saves a twentieth of a step."""
    del phase, info
    gc.callbacks.remove(_keep_start)
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def _written(text: str) -> int:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        from ba_tui.cli.streams import output_failed  # noqa: PLC0415 - it takes longer than all of this

        return output_failed(error)
    return 0


def _handed_over(argv: list[str]) -> int:
    if not argv and "_BA_COMPLETE" not in os.environ:
        # The plain start skips typer: its import would be a quarter of the time to the first paint.
        from ba_tui.cli.launch import open_app  # noqa: PLC0415

        return open_app()
    from ba_tui.cli.main import run  # noqa: PLC0415

    return run(argv)


def _open_streams() -> None:
    """Open closed standard streams (``ba … >&-``) on the null device, because otherwise the next opened file would get
    their number."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= LAST:
        os.set_inheritable(handle, True)
    os.close(handle)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process lives
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


if __name__ == "__main__":
    sys.exit(main())
