"""How programs say that the sandbox refused them something.

The patterns are compiled when a command has failed, and ``re`` keeps them then.
"""

from __future__ import annotations

import re

NETWORK = (
    r"could not resolve|name resolution|name or service not known|nodename nor servname|network is unreachable"
    r"|no address associated with hostname|getaddrinfo|EAI_AGAIN|ENETUNREACH|ECONNREFUSED|connection refused"
    r"|failed to (?:resolve|lookup address)|unable to (?:resolve|look ?up)|no route to host|dns error"
    r"|unknown host|nameresolutionerror|network access|offline mode"
)
READ_ONLY = r"read-only file system|\bEROFS\b|device or resource busy|\bEBUSY\b|cross-device"
RIGHTS = r"operation not permitted|\bEPERM\b|no new privileges|effective uid is not 0"
DENIED = r"permission denied|\bEACCES\b"
LOGINS = (
    r"auth login|not logged in|log ?in first|(?:locate|find|load).{0,40}credentials|credentials? (?:were )?not found"
    r"|connect to (?:the docker daemon|podman|bus)|docker\.sock|podman\.sock|server localhost:8080 was refused"
)
"""How programs say that they miss the settings or the service that they work with."""
MISSING = r"no such file or directory|\bENOENT\b|cannot stat|not found"


def says(words: str, text: str) -> bool:
    """Return whether ``text`` matches the pattern ``words``, in letters of either case."""
    return re.search(words, text, re.IGNORECASE) is not None
