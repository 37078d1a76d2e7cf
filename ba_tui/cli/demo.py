"""``ba demo``: the guided tour in a temporary copy of the sample data."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from ba_tui.cli.launch import open_app
from ba_tui.core.start import Start
from ba_tui.resources import bundled


def demo(
    theme: Annotated[str | None, typer.Option(metavar="NAME", help="Colours: dark, light, …")] = None,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours.")] = False,
) -> int:
    folder = tour_folder()
    start = Start("Show me around.", theme=theme or "", color=not no_color)
    return open_app({"model": "demo"}, start, folder, ours=True)


def tour_folder() -> Path:
    """A fresh copy of the sample data; the system's own clean-up takes it away some day."""
    folder = Path(tempfile.mkdtemp(prefix="ba-demo-")) / "sales"
    shutil.copytree(bundled("config") / "demo" / "data", folder)
    return folder
