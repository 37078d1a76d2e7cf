"""``ba`` and ``python -m ba_tui``. Answers what needs no imports, then hands over."""

from __future__ import annotations

import gc
import os
import sys

from ba_tui import __version__


def main() -> int:
    """Exit codes: 0 ok, 1 usage, 2 model or infrastructure, 3 limit, 4 denied, 130 interrupted."""
    argv = sys.argv[1:]
    if argv in (["--version"], ["-V"]):
        sys.stdout.write(f"ba {__version__}\n")
        return 0
    # While little but modules comes in, collecting garbage costs a tenth of a second; assembly turns it on again.
    gc.disable()
    if not argv and "_BA_COMPLETE" not in os.environ:
        # The plain start skips typer: its import would be a quarter of the time to the first paint.
        from ba_tui.cli.launch import open_app  # noqa: PLC0415

        return open_app()
    from ba_tui.cli.main import run  # noqa: PLC0415

    return run(argv)


if __name__ == "__main__":
    sys.exit(main())
