"""The mode and the permission rules of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from ba_tui.core.events import Mode
from ba_tui.core.values import frozen

RuleVerdict: TypeAlias = Literal["allow", "ask", "deny"]
RuleScope: TypeAlias = Literal["session", "project", "user"]
"""How long a rule that a person gives holds: until the session ends, in this project, or everywhere."""
RuleLayer: TypeAlias = Literal["", "bundled", "user", "claude", "project", "flag", "session"]
"""Who gives a rule; claude: a settings file of Claude Code, the person's own or that of a trusted project."""


@frozen
class RuleLine:
    """One permission rule as shown: ``shell(git status)``, its verdict, where it stands and how often it hit.

    ``terms`` is what else it says (``when``, ``timeout``, ``on_timeout``) as JSON, empty for none. ``waiting``: an
    allow rule that came with the project and counts only once the person has confirmed it.
    """

    rule: str
    verdict: str
    source: str
    hits: int = 0
    layer: RuleLayer = ""
    terms: str = ""
    waiting: bool = False

    @property
    def leaves(self) -> bool:
        """Whether it lets commands run outside the sandbox."""
        return self.verdict == "allow" and self.rule.startswith("outside(")


class Permissions(Protocol):
    """The mode and the rules of a conversation. What reads or writes files may take as long as a disk does."""

    @property
    def mode(self) -> Mode: ...

    def set_mode(self, mode: Mode) -> None:
        """Raises UsageError for a mode that is not among ``modes``."""
        ...

    def modes(self) -> Sequence[Mode]:
        """Those that can be chosen here and now, in the order that a key goes through them."""
        ...

    def rules(self) -> Sequence[RuleLine]:
        """All of them, the strongest first. May read files: call it off the loop."""
        ...

    def add(self, rule: str, verdict: RuleVerdict, scope: RuleScope) -> RuleLine:
        """Give a rule; a waiting one of the same text is confirmed by it. Writes a file: call it off the loop.

        Raises:
            UsageError: it is no rule, or one that can't be kept. StorageError: it can't be written.
        """
        ...

    def remove(self, rule: RuleLine) -> None:
        """Take a rule back. Writes a file: call it off the loop.

        Raises:
            UsageError: it is not the person's own (bundled, a flag, the project's). StorageError: as ``add``.
        """
        ...
