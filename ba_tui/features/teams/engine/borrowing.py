"""What a member borrows: asks others for tools, takes leases, and calls what it holds.

What another process returns is data. A call that got no answer is made again under the same key, so that its lender
does not do it twice.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from ba_tui.core.effects import Ceiling
from ba_tui.core.errors import UsageError
from ba_tui.core.teamwork.teams import AgentMessage
from ba_tui.core.text.wording import clipped
from ba_tui.features.teams.engine.asking.requests import NoAnswer, Requests
from ba_tui.features.teams.engine.leases import LARGEST, Denied, Lease, ceiling_out
from ba_tui.features.teams.engine.messages import Bid, ContextRequest, Share, Trouble, content, message, team_of


class Borrower:
    """Asks other members for tools with the ``requests`` of its member. Hand it what comes to its inbox with ``take``.
    ``lead``: for whom the member works now."""

    def __init__(self, requests: Requests) -> None:
        self.name = requests.name
        self.bus = requests.bus
        self._requests = requests
        self._revoked: dict[str, str] = {}
        self._open: dict[str, str] = {}
        """Keys of calls that got no answer, by what was asked."""
        self.lead = ""

    def take(self, received: AgentMessage) -> bool:
        """Whether the message was an answer that is waited for, or takes a lease back."""
        if received.type == "information_share" and received.content.get("kind") == "revoked":
            value = received.content.get("value")
            reason = cast("dict[str, Any]", value).get("reason") if isinstance(value, dict) else ""
            # Only its lender can take a lease back.
            self._revoked[f"{received.sender} {received.content.get('key')}"] = str(reason or "")
            return True
        return self._requests.take(received)

    async def lenders(self) -> Sequence[str]:
        """Who lends tools, as the lead knows. Raises UsageError."""
        share = _shared(await self._ask(ContextRequest("capability"), self.lead), "lenders")
        return [str(each) for each in cast("list[Any]", share.value)] if isinstance(share.value, list) else []

    async def offers(self, query: str, lenders: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """The tools that fit ``query``, by their lender; those who do not answer in time are left out."""
        asked = ContextRequest("capability", query)
        found = await asyncio.gather(*(self._ask(asked, each) for each in lenders), return_exceptions=True)
        offers: dict[str, tuple[str, ...]] = {}
        for name, each in zip(lenders, found, strict=True):
            if isinstance(each, AgentMessage) and each.type == "bid" and (tools := content(Bid, each).tools):
                offers[name] = tools
        return offers

    async def borrow(self, lender: str, tools: Sequence[str], seconds: float) -> Lease:
        """Raises Denied, UsageError when no answer comes."""
        facts: dict[str, Any] = {"tools": list(tools), "seconds": seconds, "lead": self.lead}
        share = _shared(await self._ask(ContextRequest("lease", facts=facts), lender), "lease")
        given = cast("dict[str, Any]", share.value) if isinstance(share.value, dict) else {}
        names, until = given.get("tools"), given.get("until")
        if not isinstance(names, list) or not isinstance(until, int | float):
            raise UsageError(f"{lender} answered with a wrong lease.")
        covered = tuple(str(each) for each in cast("list[object]", names))
        described = given.get("described")
        told = cast("dict[str, Any]", described) if isinstance(described, dict) else {}
        return Lease(share.key, lender, self.name, covered, float(until), self.lead, told)

    def holds(self, lease: Lease) -> bool:
        return lease.until > time.time() and self._revocation(lease) is None

    def _revocation(self, lease: Lease) -> str | None:
        return self._revoked.get(f"{lease.lender} {lease.id}")

    async def call(self, lease: Lease, tool: str, args: Mapping[str, Any], ceiling: Ceiling) -> tuple[str, bool]:
        """The text of the result, and whether it is an error. ``ceiling``: what the borrower itself may do.

        Raises:
            Denied: the lease does not hold, or does not cover it. NoAnswer: the lender is gone.
        """
        if (why := self._revocation(lease)) is not None:
            raise Denied(f"{lease.lender} took the lease back. {why}".strip(), "Ask for a new one.")
        same = json.dumps([lease.lender, tool, args], sort_keys=True, default=str)
        key = self._open.setdefault(same, uuid.uuid4().hex)
        asked = ContextRequest("call", tool, lease.id, {"args": dict(args), "ceiling": ceiling_out(ceiling)})
        try:
            share = _shared(await self._ask(asked, lease.lender, key), "result")
        except NoAnswer:
            raise
        except UsageError:
            del self._open[same]
            raise
        del self._open[same]
        match share.value:
            case {"text": str(text), "is_error": bool(wrong)}:
                return clipped(text, LARGEST), wrong
            case _:
                raise UsageError(f"{lease.lender} answered with a wrong result.")

    async def _ask(self, asked: ContextRequest, member: str, key: str = "") -> AgentMessage:
        request = message(asked, self.name, member, team=team_of(self.lead))
        answer = await self._requests.ask(replace(request, idempotency_key=key))
        if answer.type == "error":
            trouble = content(Trouble, answer)
            raise Denied(trouble.message, trouble.hint)
        return answer


def _shared(answer: AgentMessage, kind: str) -> Share:
    share = content(Share, answer)
    if share.kind != kind:
        raise UsageError(f"{answer.sender} answered with something else than a {kind}.")
    return share
