"""``ba`` and ``python -m ba_tui``. Answers what needs no imports, then hands over."""

from __future__ import annotations

import gc
import os
import sys

from ba_tui import __version__

INTERRUPTED = 130
LAST = 2
"""The number of the last standard stream."""
START_OBJECTS = 150_000
"""About as many container objects as a start makes that stay: modules, classes, functions."""


def main() -> int:
    """Exit codes: 0 ok, 1 usage, 2 model or infrastructure, 3 limit, 4 denied, 130 interrupted, 129 and 143 ended."""
    argv = sys.argv[1:]
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _open_streams()
    if argv in (["--version"], ["-V"], ["-v"]):
        return _written(f"ba {__version__}\n")
    try:
        # What was answered above needs none of it.
        from ba_tui.cli.streams import drop_lost_narration, tell_of_confinement  # noqa: PLC0415
        from ba_tui.processes.signals import run_in_order  # noqa: PLC0415

        _delay_collection()
        drop_lost_narration()
        tell_of_confinement()
        return run_in_order(lambda: _handed_over(argv))
    except KeyboardInterrupt:
        return INTERRUPTED


def _delay_collection() -> None:
    """Let the garbage collector run for the first time after the start, in every command: before, there is little but
    modules to find, which costs a tenth of a second."""
    gc.set_threshold(START_OBJECTS, 20, 20)
    gc.callbacks.append(_keep_start)


def _keep_start(phase: str, info: dict[str, int]) -> None:
    """At the first collection, set aside what the start made: no later one visits those objects again. Collections
    then come less often than by default, which saves a twentieth of a step."""
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
    """Streams that were closed (``ba … >&-``) lead nowhere. Else the next file to be opened would be taken for one."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= LAST:
        os.set_inheritable(handle, True)
    os.close(handle)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process lives
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


if __name__ == "__main__":
    sys.exit(main())
