"""Allow rules that somebody else gives for a while: an active skill, the command of a turn."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence

from ba_tui.core.errors import UsageError
from ba_tui.permissions.rules.rule import EFFECTS, Rule, read_rule

log = logging.getLogger(__name__)


def grantable(rules: Iterable[str], tools: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those of ``rules`` that can allow something where there are these ``tools``, and the others."""
    good, other = list[str](), list[str]()
    for text in rules:
        name = text.partition("(")[0]
        known = name in tools or name in EFFECTS or name.startswith("mcp__")
        (good if known and _readable(text) else other).append(text)
    return tuple(good), tuple(other)


def _readable(text: str) -> bool:
    try:
        read_rule(text, "allow")
    except UsageError:
        return False
    return True


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
