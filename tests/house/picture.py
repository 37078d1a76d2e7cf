"""Draws the README's picture from the real app: ``python -m tests.house.picture``. The tour, at its first question."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from pathlib import Path

from textual.pilot import Pilot

from ba_tui.assembly import connect
from ba_tui.core.services import Services
from ba_tui.core.start import Start
from ba_tui.faces.tui.app import BaApp
from ba_tui.resources import bundled

DEMO = bundled("config") / "demo"
SIZE = (112, 40)
PATIENCE = 400


def plain(svg: str) -> str:
    """Without the font that would be fetched from the web."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S)
    return re.sub(r"font-family: [^;]*;", "font-family: ui-monospace, Menlo, Consolas, monospace;", svg)


async def shown(app: BaApp, pilot: Pilot[None], words: str) -> str:
    for _ in range(PATIENCE):
        await pilot.pause(0.05)
        svg = app.export_screenshot(title="ba")
        if words in svg.replace("&#160;", " "):
            return svg
    raise TimeoutError(f"{words} did not show")


async def draw(place: Path) -> str:
    os.environ.update(BA_HOME=str(place / "home"), HOME=str(place))
    folder = Path(shutil.copytree(DEMO / "data", place / "sales"))

    def services() -> Services:
        return connect({"model": "demo"}, folder, ours=True)

    app = BaApp(services, Start("Is South really our best region?", theme="dark"))
    async with app.run_test(size=SIZE) as pilot:
        await shown(app, pilot, "Yes, once")
        await pilot.pause(0.7)
        return app.export_screenshot(title="ba")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        drawn = plain(asyncio.run(draw(Path(name))))
    (Path("config") / "demo" / "picture.svg").write_text(drawn, "utf-8")
