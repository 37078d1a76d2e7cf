"""Which hosts a confined command may reach: decided once for each, by rules or by the person, and kept for the audit.

The connections themselves are egress_proxy.py's; what confines the command is permissions/sandbox.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Literal, TypeAlias

from ba_tui.core.events import Judged
from ba_tui.core.questions import Question
from ba_tui.core.results import CommandText
from ba_tui.core.text.json_line import args_hash
from ba_tui.core.tool import Call
from ba_tui.core.values import frozen
from ba_tui.permissions.rules.rulebook import NETWORK
from ba_tui.permissions.verdicts import Allow, Ask, Deny
from ba_tui.tools.guards.permission import keep_rule
from ba_tui.tools.web.addresses import AddressReach, WebAddress
from ba_tui.tools.web.client import Resolve, look_up

HostVerdict: TypeAlias = Allow | Deny | Ask
HostCaller: TypeAlias = Literal["rule", "mode", "person", "hook"]

RESOLVE_SECONDS = 10.0
MAX_ADDRESSES = 4
USUAL = (80, 443)
NOT_PUBLIC = "it is not on the public internet"
ALONE = "a background command can't ask you; add the host to commands.domains"


@frozen
class NetworkAccess:
    """The way out for confined commands. ``judge`` says what rules and the mode say of an address, ``remember`` keeps a
    rule; ``reach``: which machines may be asked at all."""

    judge: Callable[[WebAddress, Call], HostVerdict]
    remember: Callable[[str, Literal["session", "always"]], None]
    reach: AddressReach = AddressReach()
    resolve: Resolve = look_up

    async def machines(self, address: WebAddress) -> Sequence[str]:
        """The addresses to connect to, looked up just now and checked. Empty when the host lies where nobody may go.

        Raises:
            OSError: its name is not known; TimeoutError is one too.
        """
        async with asyncio.timeout(RESOLVE_SECONDS):
            found = [address.host] if address.ip else await self.resolve(address.host, address.port)
        return [ip for ip in found if self.reach.allows(address.host, ip_address(ip.partition("%")[0]))][:MAX_ADDRESSES]


class HostDecisions:
    """What was decided for one command. ``attended``: somebody waits for it, and can be asked."""

    def __init__(self, network: NetworkAccess, call: Call, command: CommandText, *, attended: bool) -> None:
        self.network = network
        self.attended = attended
        self.refused: dict[str, str] = {}
        """The hosts that were not to be reached, with why."""
        self._call = call
        self._command = command
        self._decided: dict[tuple[str, int], asyncio.Task[str]] = {}
        self._asking: set[object] = set()
        self._waited = 0.0
        self._since = 0.0

    @property
    def waited(self) -> float:
        """Seconds in which a person was being asked; they do not count against the command."""
        return self._waited + (time.monotonic() - self._since if self._asking else 0.0)

    async def refusal(self, address: WebAddress) -> str:
        """Why ``address`` is not reached; empty when it may be. Who comes meanwhile waits for the same answer."""
        key = (address.host, 0 if address.port in USUAL else address.port)
        task = self._decided.get(key)
        if task is None:
            task = self._decided[key] = asyncio.create_task(self._decide(address))
        return await asyncio.shield(task)

    async def settle(self) -> None:
        """The command is no longer waited for: nothing more is asked, and what is being asked is waited for."""
        self.attended = False
        if open_ones := [task for task in self._decided.values() if not task.done()]:
            await asyncio.wait(open_ones)

    def end(self) -> None:
        for task in self._decided.values():
            task.cancel()

    async def _decide(self, address: WebAddress) -> str:
        if address.ip and not self.network.reach.allows(address.host, address.ip):
            # What no answer could allow is not asked about.
            return self._note(address, "deny", "mode", why=NOT_PUBLIC)
        verdict = await asyncio.to_thread(self.network.judge, address, self._call)
        match verdict:
            case Allow(by=rule):
                return self._note(address, "allow", "rule" if rule else "mode", rule)
            case Deny(reason=reason, by=rule):
                return self._note(address, "deny", "rule" if rule else "mode", rule, reason)
            case Ask():
                return await self._ask(verdict, address)

    async def _ask(self, ask: Ask, address: WebAddress) -> str:
        if not self.attended:
            return self._note(address, "deny", "mode", ask.by, ALONE)
        args = {"address": address.origin}
        question = Question(
            "permission",
            f"Let this command reach {address.place}?",
            call_id=self._call.id,
            tool=NETWORK,
            args=dict(args),
            preview=self._command,
            reason=ask.reason,
            risks=("network",),
            rule=ask.rule,
            timeout=ask.timeout,
            on_timeout=ask.on_timeout,
        )
        self._since = self._since if self._asking else time.monotonic()
        self._asking.add(question.text)
        try:
            reply = await self._call.ask(question)
        finally:
            self._asking.discard(question.text)
            self._waited += 0.0 if self._asking else time.monotonic() - self._since
        who: HostCaller = "mode" if reply.by == "nobody" else reply.by
        if reply.edited is not None and reply.edited != args:
            return self._note(address, "deny", who, "", "the user wrote another address instead")
        if reply.choice in {"deny", "text"}:
            said = reply.text.strip()
            return self._note(
                address,
                "deny",
                who,
                "",
                f"the user said no{f': {said}' if said else ''}" if who == "person" else said,
            )
        await keep_rule(self.network.remember, reply, ask, self._call)
        return self._note(address, "allow", who, ask.by)

    def _note(
        self,
        address: WebAddress,
        word: Literal["allow", "deny"],
        who: HostCaller,
        rule: str = "",
        why: str = "",
    ) -> str:
        """The decision for the audit, and the refusal that it is."""
        if word == "deny":
            self.refused[address.place] = why = " ".join(why.split()).rstrip(".")
        hash = args_hash({"address": address.origin})
        self._call.branch.emit(Judged(self._call.id, NETWORK, word, who, rule, f"to reach {address.place}", hash))
        return why
