"""The breakdown of the window as sections of aligned rows: what fills it, what was used, what it cost. Pure values.

How rows are chosen and what they open is the screen's.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.cells import cell_len
from textual.content import Content

from ba_tui.core.ledger import Account, Ledger, Shortening
from ba_tui.core.messages import Usage
from ba_tui.core.ports.context import ContextItem, ContextPart
from ba_tui.core.provider import ModelInfo
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.faces.tui.meters import bar, cache_share, filled, fullness, money, share, short_count
from ba_tui.faces.tui.screens.picker import fitted

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
    """``figures`` stand in columns, the least important last; ``detail`` gets what room is left."""

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
    """How full it is, and how that is known."""
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
    """What was used and paid, by model and by turn."""
    found = [_totals(ledger), _models(ledger, 1), _turns(ledger), _shortened(ledger)]
    return [section for section in found if section.entries]


def cost_lead(ledger: Ledger) -> str:
    """The sum in a sentence."""
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
    """Tokens and their share of the window."""
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
    """Why a cost is not known, or not all of it."""
    if ledger.session.cost is None and ledger.session.usage.estimated:
        return "the server of a model reports no usage, so its tokens are ba's estimate (~)"
    if ledger.session.cost is None:
        return "a model that was used has no known price"
    if ledger.uncounted:
        return f"without {ledger.uncounted} answer{'s' * (ledger.uncounted != 1)} that nobody counted"
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


def _shortening(of: Shortening) -> ContextEntry:
    when = time.strftime("%H:%M", time.localtime(of.at))
    name = "taken back" if of.strategy == "undo" else of.strategy
    who = "" if of.agent == "main" else f" ({of.agent})"
    sizes = (short_count(of.before), short_count(of.after), money(of.cost))
    text = f"{of.before:,} to {of.after:,} tokens, {money(of.cost)}.\nKept: {of.kept}."
    return ContextEntry(f"{when} {name}{who}", sizes, of.kept, ContextPage(f"Compression at {when}: {name}", text))


def _line(text: str) -> str:
    return " ".join(text[:400].split())


def painted_section(section: Section, width: int) -> tuple[Content, list[Content]]:
    """Its heading and its rows in ``width`` cells: columns that find no room are left out, the last one first."""
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
    title = Content.assemble((fitted(section.title, room), "bold"), (heads, "$text-muted"))
    rows: list[Content] = []
    for label, entry in zip(labels, section.entries, strict=True):
        cells = "".join(
            "  " + " " * (size - cell_len(cell)) + cell for cell, size in zip(entry.figures, widths, strict=False)
        )
        detail = f"  {fitted(_clean(entry.detail), left).rstrip()}" if entry.detail and left >= DETAIL else ""
        rows.append(Content.assemble(fitted(label, room), cells, (detail, "$text-muted")))
    return title, rows


def _clean(text: str) -> str:
    return paintable(text, newlines=False)
