"""What a frugal screen paints is what Textual's own would paint, and no more than has to be."""

from __future__ import annotations

from itertools import pairwise

from textual._compositor import Compositor
from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from textual.geometry import Region
from textual.strip import Strip
from textual.widgets import Static

from ba_tui.faces.tui.frames import FrugalScreen
from ba_tui.faces.tui.transcript.view import TranscriptView
from tests.faces.tui.transcript.test_view import turns


class Room(Vertical):
    """A container that counts how often its own rows, which lie behind those of others, are rendered."""

    rendered = 0

    def render_lines(self, crop: Region) -> list[Strip]:
        self.rendered += 1
        return super().render_lines(crop)


class Page(FrugalScreen):
    def compose(self) -> ComposeResult:
        with Room(), Horizontal():
            with Vertical():
                yield TranscriptView()
            yield Static("beside\n[b]日本語[/b]", id="side")
        yield Static("at work", id="clock")
        yield Static("over", id="over")


class Sample(App[None]):
    CSS = """
    Page { layers: below above; }
    #side { width: 14; height: 1fr; padding: 1 2; border-left: solid red; }
    #clock { height: 1; }
    #over { layer: above; offset: 5 3; width: 9; height: 2; background: blue 50%; }
    """

    def get_default_screen(self) -> Page:
        return Page()


def painted(screen: Page, crop: Region, *, own: bool) -> list[str]:
    """The cells within ``crop``, with their colours."""
    render = Compositor._render_chops if own else type(screen._compositor)._render_chops
    chops = render(screen._compositor, crop, lambda _: True)
    cuts = screen._compositor.cuts
    return [
        f"{y}:{cut} {chops[y][cut].render(screen.app.console)}"
        for y in crop.line_range
        for cut, end in pairwise(cuts[y])
        if cut < crop.right and end > crop.x
    ]


async def test_a_frame_is_what_textual_would_paint() -> None:
    crops = [(0, 0, 60, 16), (0, 15, 60, 1), (3, 2, 4, 5), (44, 4, 16, 9), (59, 0, 1, 16)]
    async with Sample().run_test(size=(60, 16)) as pilot:
        page = pilot.app.screen
        assert isinstance(page, Page)
        page.query_one(TranscriptView).replay(turns(4))
        await pilot.pause()
        for crop in map(Region._make, crops):
            assert painted(page, crop, own=False) == painted(page, crop, own=True)


async def test_what_lies_behind_others_is_not_rendered() -> None:
    async with Sample().run_test(size=(60, 16)) as pilot:
        room = pilot.app.screen.query_one(Room)
        before = room.rendered
        pilot.app.screen.query_one("#clock", Static).update("still at work")
        pilot.app.screen.query_one(TranscriptView).replay(turns(4))
        await pilot.pause()
        assert room.rendered == before


async def test_rows_of_the_conversation_are_styled_as_textual_would_style_them() -> None:
    async with Sample().run_test(size=(60, 16)) as pilot:
        view = pilot.app.screen.query_one(TranscriptView)
        view.replay(turns(4))
        await pilot.pause()
        for crop in (view.size.region, Region(7, 2, 11, 5)):
            assert view.render_lines(crop) == view._styles_cache.render_widget(view, crop)
