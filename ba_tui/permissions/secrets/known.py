"""Secret values that ba found in the files of the workspace. Results of tools are searched for them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ba_tui.core.text.patterns import regex

LEAST = 6
"""Characters of the shortest value that is kept: a shorter one occurs in any text by chance."""
LONGEST = 20_000
"""Characters of the longest value that is kept."""
MOST = 5_000
"""Values that are kept; a workspace with more has files of data that are named as secret."""

_WORDS = """
    access account active address admin administrator always amqp anonymous api apikey apple application async auto
    azure backend bearer bucket changeme client cluster cognito config console custom database datadog debug default
    defaults deploy dev develop developer development disable disabled docker domain dummy email enable enabled english
    error example example.com fake false file files frontend gemini google guest health host hostname http https
    info invalid info@example.com integration internal json kafka latest legacy letmein level local localdev localhost
    logging login london main manual master memory memcached message method mongo mongodb mssql mysql never newrelic
    nginx nobody none null number object off online openai option oracle package passwd password path pending
    placeholder plain port postgres postgresql preview primary private prod production profile project protected public
    python rabbitmq react read readonly redis region remote replica required root sandbox schema secondary secret
    secrets section sender sentry server service session silent simple smtp socket source sqlite sqlite3 ssl stage
    staging standard static status storage string stripe strict success support system target template test testing
    tester text time timeout title token true twilio undefined unknown update user user@example.com username utf-8 utf8
    value values verbose version warning warnings website windows worker world yarn yes
"""
_TRIVIAL = frozenset(_WORDS.split())
_PLAIN = regex(
    r"0+|\d{1,5}|\d+0{3}|v?\d+(?:\.\d+){1,3}|(?P<same>.)(?P=same)+|[a-z]{2}-[a-z]+-\d|\d{4}-\d\d-\d\d"
    r"|(?:https?|ftp)://(?:localhost|127\.0\.0\.1|0\.0\.0\.0)(?::\d+)?/?|(?:localhost|127\.0\.0\.1|0\.0\.0\.0)(?::\d+)?"
    r"|\$\{?\w+\}?|<[^<>]*>|\.{0,2}(?:/[a-z]{1,12}){1,4}/?"
)
"""Numbers, versions, regions, dates, addresses of this machine, references and folders: no secret looks so."""


class KnownSecrets:
    """The secret values of one session's workspace, each with the kind of secret that it is. Thread-safe.

    Values are never logged: ``repr`` shows their number only.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: Mapping[str, str] = MappingProxyType({})
        self._version = 0

    @property
    def version(self) -> int:
        """A counter that grows whenever the values change."""
        return self._version

    def add(self, values: Iterable[str], kind: str) -> None:
        """Keep the ``values`` that can be told from ordinary text; the first ``kind`` of a value wins."""
        told = {value: kind for value in dict.fromkeys(map(str.strip, values)) if is_telling(value)}
        with self._lock:
            new = {value: kind for value, kind in told.items() if value not in self._values}
            room = MOST - len(self._values)
            if new and room > 0:
                kept = dict(list(new.items())[:room])
                self._values = MappingProxyType({**self._values, **kept})
                self._version += 1

    def values(self) -> Mapping[str, str]:
        """Return the kind of each known value: an unchanging view of this moment."""
        return self._values

    def __repr__(self) -> str:
        return f"KnownSecrets({len(self._values)} values)"


def is_telling(value: str) -> bool:
    """Return whether a secret value can be recognised in other text: long enough, and no common word or number."""
    if not LEAST <= len(value) <= LONGEST or value.lower() in _TRIVIAL:
        return False
    return not _PLAIN.fullmatch(value)
