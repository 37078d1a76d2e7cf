"""How ba stands: version, session, model, mode, folder, trust, sandbox, context and cost, a line each."""

from __future__ import annotations

from ba_tui import __version__
from ba_tui.core.errors import BaError
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.acts.port import Actions
from ba_tui.faces.tui.meters import filled, money, share, short_count
from ba_tui.faces.tui.screens.report import ReportPane, ReportRow
from ba_tui.faces.tui.session import MEANING

MORE = "/context · /cost · /config · /permissions · /doctor say more"


class StatusScreen(ReportPane):
    """Made anew each time."""

    def __init__(self, chat: Actions) -> None:
        super().__init__(f"ba {__version__}", MORE, [ReportRow(row) for row in status_rows(chat) if row[1]])


def status_rows(chat: Actions) -> list[tuple[str, str]]:
    """Names and what there is to say of each; nothing here reads a file."""
    services, conversation = chat.session.live
    ledger, turns = chat.status.ledger, len(chat.status.ledger.turns)
    session = f"{conversation.title or 'no title yet'}, {count(turns, 'turn')}" if chat.session.started else "empty"
    mode = chat.session.mode
    inventory = conversation.inventory
    jobs = [job for job in inventory.jobs.list() if job.state == "running"] if inventory.jobs else []
    problems = [notice for notice in services.notices if notice.level != "info"]
    try:
        window = conversation.model_info().window
    except BaError:
        window = 0
    used = f"{filled(ledger)} of {short_count(window)} tokens, {share(ledger.filled, window)} %" if window else ""
    return [
        ("Session", f"{session} ({conversation.id})"),
        ("Model", conversation.model + (f": {chat.turns.missing}" if chat.turns.missing else "")),
        ("Mode", f"{mode}: {MEANING[mode]}"),
        ("Folder", str(conversation.cwd)),
        ("More folders", ", ".join(map(str, chat.session.folders))),
        ("Trust", "not trusted: only reads (/trust)" if chat.session.reads_only else "this folder is trusted"),
        ("Read-only", f"open in {chat.session.read_only}" if chat.session.read_only else ""),
        ("Sandbox", inventory.confinement() or "not tried yet"),
        ("Context", used if ledger.filled else "nothing was sent yet"),
        ("Cost", f"{money(ledger.session.cost)} in this session, {money(ledger.turn.cost)} in the newest turn"),
        ("Background", count(len(jobs), "command") if jobs else ""),
        ("Notices", f"{count(len(problems), 'problem')} at the start: /notices" if problems else ""),
    ]
