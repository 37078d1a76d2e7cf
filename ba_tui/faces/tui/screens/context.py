"""The context window, whose parts can be opened; and the cost of the session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets.option_list import Option

from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import BaError
from ba_tui.core.ledger import Account, CompressionEntry, Ledger
from ba_tui.core.messages import Usage
from ba_tui.core.ports.context import ContextItem, ContextPart
from ba_tui.core.provider import ModelInfo
from ba_tui.core.text.cells import fit_words
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.faces.tui.acts.port import Actions
from ba_tui.faces.tui.inspector.model import InspectorValue
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.meters import bar, cache_share, filled, fullness, money, share, short_count
from ba_tui.faces.tui.screens.list_screen import ListRow, ListScreen
from ba_tui.faces.tui.screens.sheet import app_of

BIGGEST, TURNS = 10, 100
ROOMY = 60
"""Cells from which there is room for a bar."""
LABEL, LEAST, DETAIL = 36, 16, 10
"""Cells: the most and the least of a label, the least of a detail."""


@frozen
class ContextPage:
    """What a row opens: a text to read, or ``items`` to choose from."""

    title: str
    text: str = ""
    items: tuple[ContextItem, ...] = ()


@frozen
class ContextEntry:
    """``figures`` are columns, the least important last; ``detail`` gets the remaining width."""

    label: str
    figures: tuple[str, ...] = ()
    detail: str = ""
    page: ContextPage | None = None


@frozen
class Section:
    title: str
    heads: tuple[str, ...]
    entries: Sequence[ContextEntry]


@frozen
class Window:
    """``used`` of the window as the ledger knows it; where that knows nothing, the sum of the estimates."""

    model: ModelInfo
    parts: Sequence[ContextPart]
    ledger: Ledger

    @property
    def estimate(self) -> int:
        return sum(part.tokens for part in self.parts if not part.kept_free)

    @property
    def used(self) -> int:
        return self.ledger.filled or self.estimate

    @property
    def percent(self) -> int:
        return share(self.used, self.model.window)


def lead(of: Window, width: int) -> Content:
    """Return how full it is, and how that is known."""
    warning, colour = fullness(of.percent)
    known = bool(of.ledger.filled)
    used = filled(of.ledger) if known else f"~{short_count(of.used)}"
    gauge = f"  {bar(of.percent, 16)}" if width >= ROOMY else ""
    first = f"{used} of {short_count(of.model.window)} tokens{gauge}  {of.percent}% {warning}".rstrip()
    if width < ROOMY:
        how = "~ marks an estimate."
    elif not known:
        how = "The provider has not counted yet; ~ marks an estimate."
    elif of.ledger.estimated:
        how = "Estimated since the provider last counted; shares are estimates (~)."
    else:
        how = "Counted by the provider at the newest answer; shares are estimates (~)."
    if not of.model.known:
        how += f" The model's window is not known; {short_count(of.model.window)} are assumed."
    return Content("\n").join([Content.styled(first, colour if warning else ""), Content.styled(how, "$text-muted")])


def sections(of: Window) -> list[Section]:
    found = [
        _shares(of),
        _totals(of.ledger),
        _models(of.ledger),
        _turns(of.ledger),
        _biggest(of),
        _shortened(of.ledger),
    ]
    return [section for section in found if section.entries]


def costs(ledger: Ledger) -> list[Section]:
    """Return usage and cost by model and by turn."""
    found = [_totals(ledger), _models(ledger, 1), _turns(ledger), _shortened(ledger)]
    return [section for section in found if section.entries]


def cost_lead(ledger: Ledger) -> str:
    """Return the sum in a sentence."""
    if not ledger.session.requests:
        unknown = f"The provider counted none of {count(ledger.uncounted, 'answer')}."
        return unknown if ledger.uncounted else "Nothing was asked in this session yet."
    asked = count(ledger.session.requests, "request")
    if ledger.session.cost is None:
        return f"{asked}; what they cost is not known: {_unknown(ledger)}."
    return f"{money(ledger.session.cost)} for {asked}, by the prices that ba knows (/guide prices)."


def _shares(of: Window) -> Section:
    window = of.model.window

    def entry(part: ContextPart) -> ContextEntry:
        return ContextEntry(
            part.label, figures(part.tokens, window, exact=part.exact or part.kept_free), part.detail, _opened(part)
        )

    taken = [entry(part) for part in of.parts if not part.kept_free]
    kept = [part for part in of.parts if part.kept_free]
    free = window - of.used - sum(part.tokens for part in kept)
    left = [ContextEntry("Free", figures(max(0, free), window))] if of.parts else []
    return Section("Window", ("tokens", "share"), [*taken, *left, *map(entry, kept)])


def _opened(part: ContextPart) -> ContextPage | None:
    if len(part.items) == 1:
        return ContextPage(part.items[0].label, part.items[0].text)
    return ContextPage(part.label, items=part.items) if part.items else None


def figures(tokens: int, window: int, *, exact: bool = False) -> tuple[str, str]:
    """Return tokens and their share of the window."""
    part = share(tokens, window)
    return f"{'' if exact or not tokens else '~'}{short_count(tokens)}", "<1%" if tokens and not part else f"{part}%"


def _totals(ledger: Ledger) -> Section:
    turn, all_of = ledger.turn, ledger.session
    used = (all_of.usage, turn.usage)
    rows = [
        ContextEntry("Fresh input", tuple(f"{each.about}{short_count(each.input)}" for each in used)),
        ContextEntry("Written to the cache", tuple(short_count(each.cache_write) for each in used)),
        ContextEntry("Read from the cache", tuple(short_count(each.cache_read) for each in used)),
        ContextEntry("Output", tuple(f"{each.about}{short_count(each.output)}" for each in used)),
        ContextEntry("Input from the cache", tuple(map(cache_share, used))),
        ContextEntry("Cost", (money(all_of.cost), money(turn.cost)), _unknown(ledger)),
    ]
    if ledger.summed != Usage():
        went = f"{short_count(ledger.summed.prompt)} in, {short_count(ledger.summed.output)} out"
        rows.append(ContextEntry("of it for summaries", (money(ledger.summaries), ""), went))
    elif ledger.summaries != 0:
        rows.append(ContextEntry("of it for summaries", (money(ledger.summaries), "")))
    return Section("Tokens and cost", ("session", "turn"), rows)


def _unknown(ledger: Ledger) -> str:
    """Return why a cost is not known, or not all of it."""
    if ledger.session.cost is None and ledger.session.usage.estimated:
        return "the server of a model reports no usage, so its tokens are ba's estimate (~)"
    if ledger.session.cost is None:
        return "a model that was used has no known price"
    if ledger.uncounted:
        return f"without {ledger.uncounted} answer{'s' * (ledger.uncounted != 1)} whose tokens were not reported"
    return ""


def _models(ledger: Ledger, least: int = 2) -> Section:
    rows = [ContextEntry(model or "unnamed", _account(account)) for model, account in ledger.models.items()]
    return Section("Models", ("cost", "in", "out", "cached", "requests"), rows if len(rows) >= least else [])


def _account(of: Account) -> tuple[str, ...]:
    used = of.usage
    sizes = (f"{used.about}{short_count(each)}" for each in (used.prompt, used.output))
    return money(of.cost), *sizes, cache_share(used), str(of.requests)


def _turns(ledger: Ledger) -> Section:
    rows = [
        ContextEntry(
            f"{turn.number} {_line(turn.prompt)}",
            _account(turn.account),
            page=ContextPage(f"Turn {turn.number}", turn.prompt),
        )
        for turn in reversed(ledger.turns[-TURNS:])
    ]
    more = f", the newest {TURNS} of {len(ledger.turns)}" if len(ledger.turns) > TURNS else ""
    return Section(f"Turns{more}", ("cost", "in", "out", "cached", "requests"), rows)


def _biggest(of: Window) -> Section:
    said = [item for part in of.parts for item in part.items if item.said]
    most = sorted(said, key=lambda item: -item.tokens)[:BIGGEST]
    window = of.model.window
    rows = [
        ContextEntry(item.label, figures(item.tokens, window), item.detail, ContextPage(item.label, item.text))
        for item in most
    ]
    return Section("Biggest messages", ("tokens", "share"), rows)


def _shortened(ledger: Ledger) -> Section:
    rows = [_shortening(each) for each in reversed(ledger.shortened)]
    return Section("Compressions", ("before", "after", "cost"), rows)


def _shortening(of: CompressionEntry) -> ContextEntry:
    when = time.strftime("%H:%M", time.localtime(of.at))
    name = "taken back" if of.strategy == "undo" else of.strategy
    who = "" if of.agent == "main" else f" ({of.agent})"
    sizes = (short_count(of.before), short_count(of.after), money(of.cost))
    text = f"{of.before:,} to {of.after:,} tokens, {money(of.cost)}.\nKept: {of.kept}."
    return ContextEntry(f"{when} {name}{who}", sizes, of.kept, ContextPage(f"Compression at {when}: {name}", text))


def _line(text: str) -> str:
    return " ".join(text[:400].split())


def painted_section(section: Section, width: int) -> tuple[Content, list[Content]]:
    """Return the heading and the rows of ``section`` in ``width`` cells, without the last columns if there is too
    little room.
    """
    labels = [_clean(entry.label) for entry in section.entries]
    widths = [
        max(cell_len(cell) for cell in (head, *(entry.figures[place] for entry in section.entries if entry.figures)))
        for place, head in enumerate(section.heads)
    ]
    widest = min(LABEL, max(map(cell_len, (*labels, section.title))))
    while widths and min(widest, LEAST) + sum(widths) + 2 * len(widths) > width:
        widths.pop()
    taken = sum(widths) + 2 * len(widths)
    room = max(1, min(widest, width - taken))
    if not any(entry.detail for entry in section.entries):
        room = max(1, min(max(map(cell_len, (*labels, section.title))), width - taken))
    left = width - taken - room - 2
    heads = "".join(f"  {head:>{size}}" for head, size in zip(section.heads, widths, strict=False))
    title = Content.assemble((fit_words(section.title, room), "bold"), (heads, "$text-muted"))
    rows: list[Content] = []
    for label, entry in zip(labels, section.entries, strict=True):
        cells = "".join(
            "  " + " " * (size - cell_len(cell)) + cell for cell, size in zip(entry.figures, widths, strict=False)
        )
        detail = f"  {fit_words(_clean(entry.detail), left).rstrip()}" if entry.detail and left >= DETAIL else ""
        rows.append(Content.assemble(fit_words(label, room), cells, (detail, "$text-muted")))
    return title, rows


def _clean(text: str) -> str:
    return paintable(text, newlines=False)


LISTED = 300
"""Items of one share that are listed, the largest first."""


def open_page(screen: ListScreen[ContextPage], page: ContextPage | None) -> None:
    """Open the items or the text of ``page``."""
    if page and page.items:
        app_of(screen).push_screen(ContextItems(page))
    elif page:
        value = InspectorValue(paintable(page.title, newlines=False), text=page.text or "(nothing)")
        app_of(screen).push_screen(InspectorScreen(value))


class SectionScreen(ListScreen[ContextPage]):
    """Rows under headings with columns of their own. Subclasses return the ``sections`` and the ``summary`` above."""

    FILTERED: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("r", "reload", "recount")]
    DEFAULT_CSS = """
    SectionScreen OptionList > .option-list--option-disabled { color: $foreground; }
    """

    def __init__(self, title: str) -> None:
        super().__init__(title, lead="Counting …")
        self.empty = ""

    async def load(self) -> None:
        """Count again."""
        self.refill()

    def sections(self) -> Sequence[Section]:
        """Return the sections to show; none until they are known."""
        return ()

    def summary(self, width: int) -> Content:
        """Return the lines above the rows."""
        raise NotImplementedError

    def matching(self) -> Sequence[ListRow[ContextPage]]:
        self.rows = [
            ListRow(f"{number}.{place}", (), value=entry.page)
            for number, section in enumerate(self.sections())
            for place, entry in enumerate(section.entries)
        ]
        return self.rows

    def options(self, rows: Sequence[ListRow[ContextPage]], width: int) -> list[Option]:
        found: list[Option] = []
        if rows:
            self.lead(self.summary(width))
        for number, section in enumerate(self.sections()):
            title, painted = painted_section(section, width)
            found.append(Option(Content("\n" if number else "") + title, disabled=True))
            found += [Option(row, f"{number}.{place}") for place, row in enumerate(painted)]
        return found

    def footer(self) -> list[str]:
        opens = ["Enter open"] if self.item else []
        return [*opens, *super().footer()[1:]]

    def choose(self, row: ListRow[ContextPage]) -> None:
        open_page(self, row.value)


class ContextScreen(SectionScreen):
    """What fills the window."""

    def __init__(self, conversation: Conversation, ledger: Ledger) -> None:
        super().__init__("Context")
        self._ledger = ledger
        self._conversation = conversation
        self._window: Window | None = None

    async def load(self) -> None:
        conversation = self._conversation
        try:
            await conversation.history()
            parts = await asyncio.to_thread(conversation.context)
            model = conversation.model_info()
        except BaError as error:
            self.lead(paintable(error.with_hint, newlines=False))
            return
        self._window = Window(model, parts, self._ledger)
        self.entitle(f"Context of {model.id}")
        self.refill()

    def sections(self) -> Sequence[Section]:
        return sections(self._window) if self._window else ()

    def summary(self, width: int) -> Content:
        return lead(self._window, width) if self._window else Content("")


class CostScreen(SectionScreen):
    """What the session cost, by model and by turn. ``ledger`` has it counted already."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__("Cost")
        self._ledger = ledger

    def sections(self) -> Sequence[Section]:
        return costs(self._ledger)

    def summary(self, width: int) -> Content:
        return Content(cost_lead(self._ledger))


class ContextItems(ListScreen[ContextPage]):
    """The items in one share of the window."""

    ENTER: ClassVar[str] = "read"

    def __init__(self, page: ContextPage) -> None:
        items = sorted(page.items, key=lambda item: -item.tokens)[:LISTED]
        size = f"the biggest {LISTED} of {len(page.items):,}" if len(page.items) > LISTED else str(len(items))
        super().__init__(f"{page.title}: {size}", list(map(_item_row, range(len(items)), items)))

    def choose(self, row: ListRow[ContextPage]) -> None:
        open_page(self, row.value)


def _item_row(place: int, item: ContextItem) -> ListRow[ContextPage]:
    cells = (item.label, f"~{short_count(item.tokens)}".rjust(7), item.detail)
    return ListRow(str(place), cells, value=ContextPage(item.label, item.text))


def context(chat: Actions, __: str) -> None:
    _, conversation = chat.session.live
    chat.ba.push_screen(ContextScreen(conversation, chat.status.ledger))


def cost(chat: Actions, _: str) -> None:
    chat.ba.push_screen(CostScreen(chat.status.ledger))
