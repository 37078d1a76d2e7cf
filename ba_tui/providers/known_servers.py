"""Programs that serve models on this machine: their names, how to start them, and which one answers.

Their addresses are in config/default.yaml. Light: a start with a local model loads it. Asking for lists is in servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from ba_tui.core.values import frozen
from ba_tui.providers.faults import is_loopback

SHORT = 0.5
"""Seconds that a usual port has to answer."""
LLAMA_CPP, LLAMA_CPP_OWNER = "llama.cpp", "llamacpp"
"""What llama.cpp calls itself in the header ``Server``, and in its list of models."""


@frozen
class KnownServer:
    """A program that serves models at an address of the bundled settings; ``start`` is the command that starts it."""

    title: str
    start: str


KNOWN: Mapping[str, KnownServer] = {
    "ollama": KnownServer("Ollama", "ollama serve"),
    "lmstudio": KnownServer("LM Studio", "lms server start"),
    "llamacpp": KnownServer("llama.cpp", "llama-server --jinja -m MODEL.gguf"),
    "vllm": KnownServer("vLLM", "vllm serve MODEL"),
}


def is_near(url: str) -> bool:
    """Whether ``url`` leads to this machine or its network by a plain address, so that asking it takes no time."""
    from ipaddress import ip_address  # noqa: PLC0415 - most starts ask a vendor

    parts = urlsplit(url)
    try:
        near = is_loopback(url) or ip_address(parts.hostname or "").is_private
    except ValueError:
        near = False
    return near and parts.scheme == "http"


def server_header(url: str) -> str | None:
    """What the server at ``url`` calls itself, empty when it does not say; None when none answers.

    Takes SHORT seconds at most for each of two steps.
    """
    from http.client import HTTPConnection, HTTPException  # noqa: PLC0415 - most starts ask a vendor

    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=SHORT)
    try:
        connection.connect()
    except OSError:
        return None
    try:
        connection.request("GET", f"{parts.path.rstrip('/')}/models")
        return connection.getresponse().getheader("Server", "")
    except (OSError, HTTPException):
        return ""
    finally:
        connection.close()
