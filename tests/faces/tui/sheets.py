"""What stands on a sheet or a screen, as text."""

from __future__ import annotations

from collections.abc import Sequence

from textual.widgets import OptionList, Static

from ba_tui.faces.tui.inspector.rows import GridRow
from tests.faces.tui.conftest import Hand


def sheet_text(rows: Sequence[GridRow]) -> str:
    """Gutters are left out."""
    return "\n".join(row[-1].text for row in rows)


def lines(hand: Hand) -> str:
    """The options to choose from."""
    options = hand.app.screen.query_one(OptionList)
    return "\n".join(str(options.get_option_at_index(index).prompt) for index in range(options.option_count))


def keys(hand: Hand) -> str:
    """The last line, with the keys or what was just said."""
    return str(hand.app.screen.query_one(".keys", Static).content)


async def shown(hand: Hand, kind: type[object]) -> None:
    await hand.until(lambda: isinstance(hand.app.screen, kind) and hand.app.screen.is_mounted)
