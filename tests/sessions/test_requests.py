"""Requests to models beside the journal: byte for byte, each byte once, bounded, and sound after a crash."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.sessions.requests import (
    DATA,
    INDEX,
    ProviderRecorder,
    RequestStore,
    request_body,
    response_body,
    saved_requests,
)

HEAD = b'{"model":"m","messages":[' + b"h" * 10_000
TAIL = b"]}"


def send(recorder: ProviderRecorder, before: bytes, body: bytes, response: bytes = b"") -> None:
    """As a provider does. ``before``: the last body without its tail."""
    kept = next((i for i, (old, new) in enumerate(zip(before, body, strict=False)) if old != new), len(before))
    exchange = recorder.sent(body + TAIL, min(kept, len(body)), len(TAIL))
    exchange.received(response)
    exchange.end()


def stored_bytes(session: Path) -> int:
    return (session / DATA).stat().st_size


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=8), st.data())
def test_requests_come_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, bodies: Sequence[bytes], data: st.DataObject
) -> None:
    session = tmp_path_factory.mktemp("session")
    before, store = b"", RequestStore(session)
    recorder = store.recorder("m")
    for body in bodies:
        if data.draw(st.booleans()):
            # The session was closed and opened again.
            store.close()
            before, store = b"", RequestStore(session)
            recorder = store.recorder("m")
        send(recorder, before, body, b"answer " + body)
        before = body
    store.close()
    assert [request_body(session, n) for n in range(1, len(bodies) + 1)] == [body + TAIL for body in bodies]
    assert [response_body(session, n) for n in range(1, len(bodies) + 1)] == [b"answer " + body for body in bodies]
    assert [each.number for each in saved_requests(session)] == list(range(1, len(bodies) + 1))


def test_what_was_stored_is_not_stored_again(tmp_path: Path) -> None:
    store = RequestStore(tmp_path)
    one, other = store.recorder("m"), store.recorder("m")
    body = HEAD
    send(one, b"", body)
    for number in range(20):
        send(one, body, body := body + b"%d," % number)
    send(other, b"", HEAD + b"compressed")
    store.close()
    assert stored_bytes(tmp_path) < len(HEAD) + 200
    again = RequestStore(tmp_path)
    send(again.recorder("m"), b"", HEAD + b"compressed, and on")
    again.close()
    assert stored_bytes(tmp_path) < len(HEAD) + 300
    assert request_body(tmp_path, 21) == body + TAIL
    assert request_body(tmp_path, 23) == HEAD + b"compressed, and on" + TAIL
    files = [tmp_path / INDEX, tmp_path / DATA]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_line_and_a_part_that_a_crash_cut_off_spoil_no_other_request(tmp_path: Path, cut: int) -> None:
    store = RequestStore(tmp_path)
    recorder = store.recorder("m")
    send(recorder, b"", HEAD, b"first")
    send(recorder, HEAD, HEAD + b"second")
    store.close()
    index = tmp_path / INDEX
    index.write_bytes(index.read_bytes()[:-cut])
    (tmp_path / DATA).write_bytes((tmp_path / DATA).read_bytes()[:-2])
    again = RequestStore(tmp_path)
    send(again.recorder("m"), b"", HEAD + b"second", b"answer")
    again.close()
    number = max(each.number for each in saved_requests(tmp_path))
    assert request_body(tmp_path, 1) == HEAD + TAIL
    assert response_body(tmp_path, 1) == b"first"
    assert request_body(tmp_path, number) == HEAD + b"second" + TAIL
    assert response_body(tmp_path, number) == b"answer"


def test_a_damaged_part_is_told_and_never_shown(tmp_path: Path) -> None:
    store = RequestStore(tmp_path)
    send(store.recorder("m"), b"", HEAD)
    store.close()
    (tmp_path / DATA).write_bytes(b"x" + (tmp_path / DATA).read_bytes()[1:])
    with pytest.raises(StorageError, match="damaged"):
        request_body(tmp_path, 1)


def test_a_session_keeps_a_bounded_amount_and_says_where_it_ended(tmp_path: Path) -> None:
    for _ in range(2):
        store = RequestStore(tmp_path, limit=len(HEAD) + 50)
        recorder = store.recorder("m")
        send(recorder, b"", HEAD)
        send(recorder, HEAD, HEAD + b"x" * 100)
        send(recorder, HEAD + b"x" * 100, HEAD + b"x" * 200)
        store.close()
    assert len(list(saved_requests(tmp_path))) == 1
    with pytest.raises(UsageError, match="has requests 1 to 1, not 2") as error:
        request_body(tmp_path, 2)
    assert "later ones are not kept" in error.value.hint


def test_a_session_without_a_file_keeps_none(tmp_path: Path) -> None:
    store = RequestStore(tmp_path / "never written")
    send(store.recorder("m"), b"", HEAD)
    store.close()
    assert not (tmp_path / "never written").exists()
    with pytest.raises(UsageError, match="no saved requests"):
        request_body(tmp_path / "never written", 1)


def test_a_data_file_that_is_none_is_told(tmp_path: Path) -> None:
    store = RequestStore(tmp_path)
    send(store.recorder("m"), b"", HEAD)
    store.close()
    (tmp_path / DATA).rename(tmp_path / "elsewhere")
    (tmp_path / DATA).mkdir()
    with pytest.raises(StorageError, match="can't be read"):
        request_body(tmp_path, 1)
