"""Memory entries in words: a row of the browser, and the page of one entry. Pure."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ba_tui.core.ports.memory import Entry, MemoryState, Origin, Proposal, Recalled
from ba_tui.core.text.wording import byte_size, count, one_line
from ba_tui.faces.tui.meters import age
from ba_tui.faces.tui.screens.picker import PickerChoice
from ba_tui.faces.tui.screens.skill_page import plain

LONGEST = 300
"""Characters of a text in a row; the row is cut to the screen."""
LABEL = 11
FROM: dict[Origin, str] = {
    "person": "you",
    "assistant": "the model",
    "tool": "a tool",
    "import": "an import",
}


def entry_row(entry: Entry, *, now: float, why: str = "", newer: Entry | None = None) -> PickerChoice:
    """One entry; ``why``: what spoke for it in a search, ``newer``: the entry that superseded it."""
    state = "replaced" if entry.superseded_by else "pinned" if entry.pinned else ""
    below = [
        f"replaced by: {one_line(newer.text, LONGEST)}" if newer else "",
        why,
        "" if entry.kind == "fact" else entry.kind,
        f"from {_from(entry)}" if entry.server or entry.origin != "person" else "",
        usage(entry, now),
    ]
    cells = (one_line(entry.text, LONGEST), state, scope_of(entry), _ago(entry.at, now))
    return PickerChoice(entry.id, cells, " · ".join(filter(None, below)))


def proposal_row(proposal: Proposal) -> PickerChoice:
    older = f"replaces: {one_line(proposal.older.text, LONGEST)} · " if proposal.older else ""
    cells = (one_line(proposal.draft.text, LONGEST), "proposed", proposal.draft.scope, "")
    return PickerChoice(proposal.id, cells, f"{older}Ctrl+S saves it, Ctrl+D drops it")


def scope_of(entry: Entry) -> str:
    return "project" if entry.project else "global"


def usage(entry: Entry, now: float) -> str:
    """How often and when the entry went with a prompt; empty for never."""
    if not entry.used:
        return ""
    ago = _ago(entry.last_used, now)
    last = f", last {'just now' if ago == 'now' else f'{ago} ago'}" if ago else ""
    return f"used {count(entry.used, 'time')}{last}"


def heading(state: MemoryState, scope: str) -> str:
    """``Memory · this project · 12 entries · 24.1 KB``."""
    size = byte_size(state.size) if state.size else ""
    return " · ".join(filter(None, ("Memory", scope, count(state.entries, "entry"), size)))


def condition(state: MemoryState) -> str:
    """What is worth knowing of a memory that does not work in full; empty when it does."""
    parts = [
        state.off,
        state.why,
        f"{state.indexed[0]:,} of {state.indexed[1]:,} indexed" if state.indexed else "",
        f"{count(state.skipped, 'unreadable line')} kept aside" if state.skipped else "",
        state.newer,
    ]
    return " · ".join(part.rstrip(".") for part in parts if part)


def entry_page(entry: Entry, history: Sequence[Entry], used: Recalled | None) -> str:
    """The page of one entry as Markdown, its text first."""
    now = time.time()
    facts = [
        ("Kind", f"{entry.kind}{', pinned' if entry.pinned else ''}"),
        ("Scope", "this project" if entry.project else "all projects (global)"),
        ("About", " · ".join(filter(None, (entry.subject, entry.attribute)))),
        ("From", _source(entry)),
        ("Stored", _date(entry.at)),
        ("Used", usage(entry, now).removeprefix("used ") or "never"),
        ("Why now", used.why if used else ""),
        ("Replaced", f"by {entry.superseded_by}" if entry.superseded_by else ""),
        ("Vector", entry.model),
        ("Id", entry.id),
    ]
    lines = [f"**{name}**{' ' * (LABEL - len(name))}{plain(text)}" for name, text in facts if text]
    older = [each for each in history if each.id != entry.id]
    parts = ["\n".join(f"> {plain(line)}" for line in entry.text.splitlines()), "\\\n".join(lines)]
    if older:
        parts.append(
            "**Earlier versions**\n\n" + "\n".join(f"- {_date(each.at)}  {plain(each.text)}" for each in older)
        )
    return "\n\n".join(parts)


def _source(entry: Entry) -> str:
    session = f", in session {entry.session}" if entry.session else ""
    said = entry.speaker if entry.speaker and not entry.server else _from(entry)
    by = f", by {entry.speaker}" if entry.speaker and entry.server else ""
    return f"{said}{by}{session}"


def _from(entry: Entry) -> str:
    return f"team server {one_line(entry.server, LONGEST)}" if entry.server else FROM[entry.origin]


def _ago(at: float, now: float) -> str:
    return age(max(0.0, now - at)) if at else ""


def _date(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) if at > 0 else "unknown"
