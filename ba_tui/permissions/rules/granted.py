"""Allow rules that somebody else gives for a while: an active skill, the command of a turn."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from ba_tui.core.errors import UsageError
from ba_tui.permissions.rules.rule import Rule, read_rule

log = logging.getLogger(__name__)


class GrantedRules:
    """The rules of ``texts``, which hold for as long as they are there. A text that is no rule is logged and left out;
    ``source`` names who gives them."""

    def __init__(self, texts: Callable[[], tuple[str, ...]], source: str) -> None:
        self._texts = texts
        self._source = source
        self._read: tuple[tuple[str, ...], tuple[Rule, ...]] = ((), ())

    def __call__(self) -> Sequence[Rule]:
        if (texts := self._texts()) != self._read[0]:
            self._read = (texts, tuple(rule for text in texts if (rule := self._rule(text))))
        return self._read[1]

    def _rule(self, text: str) -> Rule | None:
        try:
            return read_rule(text, "allow", self._source)
        except UsageError as error:
            log.info("%s names %s: %s", self._source, text, error)
            return None
