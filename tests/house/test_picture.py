"""The README's moving picture: the script that makes it runs, and the file that it made can be shown anywhere."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from ba_tui.resources import bundled
from tests.house.film import SVG, Film
from tests.house.picture import SIZE, shoot

LARGEST = 300_000
CHANGED = "2026-02-25,1052,South,Gift box,1,39.00,390.00"
SHOT = """<svg xmlns="http://www.w3.org/2000/svg"><style>
.terminal-1-r1 {{ fill: #ffffff }}
</style><g clip-path="url(#c)"><rect fill="#101010" x="0" y="1.5" width="122" height="24.65"/><g>
<text class="terminal-1-r1" x="0" y="44.4" textLength="48.8">{words}</text></g></g></svg>"""


def judge(svg: str) -> ET.Element:
    """Well-formed, and nothing in it comes from elsewhere, runs, or is missing."""
    root = ET.fromstring(svg)
    assert {shape.tag.removeprefix(SVG) for shape in root.iter()} <= {
        "svg", "title", "style", "defs", "g", "rect", "text", "use",
    }  # fmt: skip
    outside = svg.replace('xmlns="http://www.w3.org/2000/svg"', "", 1)
    assert not re.search(r"https?:|url\(|@import|@font-face|data:|\bon\w+=", outside)
    ids = {shape.get("id") for shape in root.iter()}
    assert all((use.get("href") or "").startswith("#") for use in root.iter(f"{SVG}use"))
    assert {(use.get("href") or "")[1:] for use in root.iter(f"{SVG}use")} <= ids
    assert "prefers-reduced-motion" in svg
    assert svg.count("@keyframes") == len(frames(root))
    return root


def frames(root: ET.Element) -> list[ET.Element]:
    return [group for group in root.iter(f"{SVG}g") if group.get("class") == "f"]


def seen(root: ET.Element) -> str:
    """The text of the still frame."""
    rows = {group.get("id"): "".join(group.itertext()) for group in root.iter(f"{SVG}g")}
    still = "\n".join(rows[(use.get("href") or "#")[1:]] for use in root.findall(f"{SVG}use"))
    return still.replace("\xa0", " ")


def test_the_picture_can_be_shown_anywhere() -> None:
    path = bundled("config") / "guide" / "session.svg"
    root = judge(path.read_text("utf-8"))
    assert path.stat().st_size < LARGEST
    assert len(frames(root)) > 20
    assert CHANGED in seen(root), "also where nothing moves it says something"


async def test_the_script_makes_it_from_a_real_session() -> None:
    film = await shoot(pace=0, whole=False)
    root = judge(film.svg("A session"))
    assert root.findtext(f"{SVG}title") == "A session"
    assert 5 < len(film.frames) < 100
    assert all(len(frame.rows) == SIZE[1] for frame in film.frames)
    assert CHANGED in seen(root)


def test_what_does_not_change_is_one_frame_and_each_row_is_written_once() -> None:
    film = Film((10, 2))
    for words in ("&lt;a&gt;", "&lt;a&gt;", "b", "&lt;a&gt;"):
        film.add(SHOT.format(words=words), 0.5)
    assert [frame.seconds for frame in film.frames] == [1.0, 0.5, 0.5]
    svg = film.svg("a < b")
    judge(svg)
    assert svg.count(">&lt;a&gt;</text>") == 1
    assert "animation:2.00s" in svg
    assert "50.00%{visibility:visible}75.00%{visibility:hidden}" in svg
