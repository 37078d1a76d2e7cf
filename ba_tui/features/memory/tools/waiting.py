"""Facts that wait for the person's yes. Where they come from is the business of ``proposing``."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.errors import SecretRefused, UsageError
from ba_tui.core.ports.memory import Draft, Proposal
from ba_tui.features.memory.engine.sameness import Sameness, compare, fingerprint
from ba_tui.features.memory.tools.storing import Storing


class Waiting:
    """The proposals of one session. What was dismissed is not proposed again."""

    def __init__(self, storing: Storing) -> None:
        self._storing = storing
        self._proposals: dict[str, Proposal] = {}
        self._dismissed: set[str] = set()

    def all(self) -> Sequence[Proposal]:
        return tuple(self._proposals.values())

    async def add(self, drafts: Sequence[Draft]) -> Sequence[Proposal]:
        """Let those of the ``drafts`` wait that are neither known nor dismissed nor waiting; returns these.

        Raises:
            MemoryOff, StorageError: nothing can be stored.
        """
        new: list[Proposal] = []
        for draft in drafts:
            if fingerprint(draft.text) in self._dismissed or self._waits(draft.text):
                continue
            try:
                stored = await self._storing.foreseen(draft)
            except (SecretRefused, UsageError):
                continue
            if stored.outcome != "known":
                proposal = Proposal(stored.entry.id, draft, stored.older)
                self._proposals[proposal.id] = proposal
                new.append(proposal)
        return new

    def get(self, id: str) -> Proposal:
        """The proposal ``id``. Raises UsageError when it was stored or dismissed."""
        if (proposal := self._proposals.get(id)) is None:
            raise UsageError("This proposal was stored or dropped already.", "/remember TEXT stores a memory.")
        return proposal

    def drop(self, id: str) -> Proposal | None:
        return self._proposals.pop(id, None)

    def dismiss(self, id: str) -> None:
        if proposal := self.drop(id):
            self._dismissed.add(fingerprint(proposal.draft.text))

    def _waits(self, text: str) -> bool:
        return any(compare(each.draft.text, text) in {Sameness.EQUAL, Sameness.REWORDED} for each in self.all())
