"""A session that was opened: an interrupted plan is offered, and what another process writes is shown as it comes."""

from __future__ import annotations

import logging

from ba_tui.core.errors import StorageError
from ba_tui.core.events import Rewound
from ba_tui.faces.tui.acts import plan
from ba_tui.faces.tui.acts.port import Actions

log = logging.getLogger(__name__)


async def watch(chat: Actions) -> None:
    """Show what comes until another session is open. Ends at once for a session that is written here."""
    plan.offer(chat)
    _, conversation = chat.session.live
    if not conversation.read_only:
        return
    known = len(await conversation.history())
    try:
        async for event in conversation.follow():
            known -= 1
            if known >= 0:
                continue
            if isinstance(event, Rewound):
                await chat.show_session()
                return
            conversation.transcript.apply(event)
            for pane in (chat.transcript, chat.main_area, chat.status):
                pane.apply(event)
    except StorageError as error:
        log.info("a session is followed no longer: %s", error)
