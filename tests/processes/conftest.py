"""What holds for every test of processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_callback_fails(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail the test when a callback of an event loop raised: the loop only logs it and goes on."""
    yield
    said = [record.getMessage() for record in caplog.get_records("call") if record.name == "asyncio"]
    assert [message for message in said if message.startswith("Exception in callback")] == []
