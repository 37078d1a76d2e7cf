"""Fixtures around the model server; a test package takes them by importing them into its conftest.

The server itself is in server.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.loopback.server import ModelServer


@pytest.fixture
def model_server() -> Iterator[Callable[..., ModelServer]]:
    """Start a server: ``server = model_server([Step(say="Hello")])``. It stops with the test."""
    with ExitStack() as stack:

        def start(script: Any, **options: Any) -> ModelServer:
            return stack.enter_context(ModelServer(script, **options))

        yield start
