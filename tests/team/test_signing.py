"""Signatures, certificates and tokens of a team, and what is fresh: without a server."""

from __future__ import annotations

import base64
import json
import stat
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.features.teams.engine.messages import WORKERS, TaskRequest, message
from ba_tui.features.teams.engine.over_redis.signing import (
    SKEW,
    WINDOW,
    NotAllowed,
    OtherLead,
    Signer,
    Spent,
    UnsignedText,
    WrongTime,
    identity_in,
    identity_of_lead,
    invited,
    new_key,
    token_of,
)
from tests.team.redis_process import LEAD_KEY, lead_signing, member
from tests.team.sites import ANN, BOB, SENT


def test_a_signature_is_valid_for_its_text_place_and_time_alone() -> None:
    mine = Signer(member("ann"))
    sealed = mine.seal("bob", "{}")
    opened = lead_signing().open("bob", sealed)
    assert (opened.text, opened.signer.name, opened.signer.leads) == ("{}", "ann", False)
    certificate, at, signature = sealed.split()[1:4]
    other = Signer(member("ann")).identity.certificate
    for place, text in (
        ("ann", sealed),
        ("bob", sealed + " "),
        ("bob", "{}"),
        ("bob", ""),
        ("bob", f"ba2 {certificate} {int(at) + 1} {signature} {{}}"),
        ("bob", f"ba2 {other} {at} {signature} {{}}"),
        ("bob", f"ba2 {certificate}x {at} {signature} {{}}"),
        ("bob", f"ba2 {certificate} {at} {'A' * 86} {{}}"),
        ("bob", "ba2 . 0 . {}"),
        ("bob", f"{'0' * 64} {{}}"),
        ("bob", "ba2 ü 0 ü {}"),
    ):
        with pytest.raises(UnsignedText):
            mine.open(place, text)
    stranger = Signer(invited(new_key(), "ann"))
    with pytest.raises(OtherLead, match="another lead"):
        mine.open("bob", stranger.seal("bob", "{}"))


def test_a_member_cannot_make_itself_a_lead_or_another_member() -> None:
    ann = member("ann")
    held = ann.certificate.partition(".")[0]
    made = json.loads(base64.urlsafe_b64decode(held + "=="))
    forged = base64.urlsafe_b64encode(json.dumps({**made, "role": "lead"}).encode()).decode().rstrip("=")
    for certificate in (f"{forged}.{ann.certificate.partition('.')[2]}", identity_of_lead(ann.private).certificate):
        liar = Signer(replace(ann, certificate=certificate))
        with pytest.raises(OtherLead):
            lead_signing().open("x", liar.seal("x", "{}"))


def test_a_token_carries_one_members_key_and_shows_nothing_else() -> None:
    ann = member("ann")
    assert identity_in(f" {token_of(ann)}\n") == ann
    assert LEAD_KEY not in token_of(ann)
    assert ann.private not in repr(ann)
    for wrong in ("", "ba-team-x", token_of(ann)[:-9], token_of(replace(ann, private=new_key())), "x" * 5_000):
        with pytest.raises(UsageError, match="no token of a team") as error:
            identity_in(wrong)
        assert ann.private not in str(error.value)
    for name in ("", "a b", "a@b", "lead", "x" * 65, "ä"):
        with pytest.raises(UsageError, match="can't be called"):
            invited(LEAD_KEY, name)


@pytest.mark.parametrize("name", ["writer@bob-1-aaaa", "lead:t", "ann", "writer@ann", "writer@ann-1-aaaa-1-aaaa", "@"])
def test_a_worker_speaks_for_no_other_name(name: str) -> None:
    signing = lead_signing()
    opened = signing.open("x", Signer(member("ann")).seal("x", "{}"))
    assert opened.signer.speaks_for(ANN)
    with pytest.raises(NotAllowed, match="in the name of"):
        signing.admit("x", replace(SENT, sender=name), opened)


def test_a_lead_does_not_speak_for_a_worker() -> None:
    lead = identity_of_lead(LEAD_KEY).member
    assert lead.speaks_for("lead:t")
    assert lead.speaks_for("writer-1@0a1b2c3d")
    assert not lead.speaks_for(ANN)


@pytest.mark.parametrize(
    ("topic", "age", "deadline", "words"),
    [
        (BOB, 0.0, 0.0, ""),
        (BOB, -SKEW - 60, 0.0, "The clock of lead:t is 180 s ahead"),
        (BOB, WINDOW - 1, 0.0, ""),
        (BOB, WINDOW + 60, 0.0, "3,660 s ago"),
        (BOB, WINDOW + 60, 900.0, ""),
        (BOB, WINDOW + 960, 900.0, "4,560 s ago"),
        (BOB, 100_000, 1e12, "100,000 s ago"),
        (WORKERS, SKEW + 10, 0.0, "a clock is wrong"),
    ],
)
def test_messages_are_fresh(topic: str, age: float, deadline: float, words: str) -> None:
    now = time.time()
    opened = lead_signing().open(topic, Signer(identity_of_lead(LEAD_KEY), clock=lambda: now - age).seal(topic, "{}"))
    task = message(TaskRequest("1", "x", deadline=now - age + deadline if deadline else 0.0), "lead:t", "x", team="t")
    reader = Signer(member("ann"), clock=lambda: now)
    if not words:
        reader.admit(topic, task, opened)
        return
    with pytest.raises(WrongTime, match=words) as error:
        reader.admit(topic, task, opened)
    assert "clock" in error.value.hint.lower()


def test_what_was_handled_is_kept_within_bounds(tmp_path: Path) -> None:
    spent = Spent(tmp_path / "team" / "x.db", most=20)
    for number in range(30):
        spent.add(f"m{number}", 1_000.0 + number)
    spent.close()
    later = Spent(tmp_path / "team" / "x.db", most=20)
    assert all(later.has(f"m{number}", 1_000.0 + number) for number in range(30)), "forgotten ones are too old"
    assert not later.has("m31", 1_031.0)
    assert later.has("unknown", 1_001.0)
    later.keep_revoked({"bob": 5.0})
    assert later.revoked() == {"bob": 5.0}
    assert stat.S_IMODE((tmp_path / "team" / "x.db").stat().st_mode) == 0o600
    later.close()
    (tmp_path / "team" / "x.db").write_bytes(b"no database at all" * 100)
    for rest in (tmp_path / "team").glob("x.db-*"):
        rest.unlink()
    with pytest.raises(StorageError, match="can't be used"):
        Spent(tmp_path / "team" / "x.db").has("m1", 1.0)
