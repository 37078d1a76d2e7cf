"""Secret values that a result shows in pieces, reversed, spaced or encoded: the model does not see them."""

from __future__ import annotations

import base64
import codecs
import random
import string
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation
from ba_tui.core.events import Event, Notice, ToolFinished, ToolStarted
from ba_tui.permissions.secrets.disguises import PIECE, KnownSearch, merge_overlaps, search_for
from ba_tui.permissions.secrets.masking import KnownSecrets
from ba_tui.permissions.secrets.scanner import Secret
from ba_tui.permissions.secrets.sharing import SecretSharing, ingress_for
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from ba_tui.resources import UserFolders
from tests.loopback import ModelServer
from tests.script import collect

TOKEN = "ghp_Zx81kQ0fLw3vT7yBn2mRcD5sHj9aPe4uGi6X"
HEX = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
PRINTED = (
    "cat", "rev", "tac | rev", "cut -c1-20", "cut -c5-16", "cut -c22-33", "sed 's/./& /g'", "sed 's/./&-/g'",
    "fold -w1", "fold -w1 | cat -n", "fold -w1 | nl", "fold -w4 | paste -sd,", "tr a-z A-Z", "tr A-Z a-z", "xxd -p",
    "xxd -p -c 7", "xxd -i", "xxd", "rev | xxd -p", "od -c", "od -x", "od -An -tu1", "od -An -to1", "hexdump -C",
    "base64", "base64 | rev", "rev | base64", "(printf x; cat) | base64", "(printf xy; cat) | base64",
    "tr A-Za-z N-ZA-Mn-za-m",
)  # fmt: skip


def search_of(*values: str) -> KnownSearch:
    known = KnownSecrets()
    known.add(values, "GitHub token")
    return KnownSearch(known)


def output(command: str, text: str) -> str:
    return subprocess.run(["bash", "-c", command], input=text, capture_output=True, text=True, check=True).stdout


def leaks(shown: str, value: str) -> bool:
    """Whether six characters of the value in a row are left, in the ways in which people would look for them."""
    tight = "".join(filter(str.isalnum, shown)).lower()
    plain = "".join(filter(str.isalnum, value)).lower()
    ways = [plain, plain[::-1], codecs.encode(plain, "rot13"), value.encode().hex(), value[::-1].encode().hex()]
    ways += [base64.b64encode(b"x" * skipped + value.encode()).decode().lower()[4:-4] for skipped in range(3)]
    width = {3: 14, 4: 14}
    return any(
        way[at : at + width.get(number, 9)] in tight
        for number, way in enumerate(ways)
        for at in range(len(way) - width.get(number, 9) + 1)
    )


@pytest.mark.parametrize("command", PRINTED)
@pytest.mark.parametrize("value", [TOKEN, HEX])
def test_what_programs_make_of_a_known_value_is_found(command: str, value: str) -> None:
    if ("-to1" in command or "-tu1" in command or "-x" in command or "-i" in command) and value == HEX:
        value = HEX[:40]
    shown = search_of(value).masked(f"before\n{output(command, value)}\nafter\n")
    assert "[secret: " in shown
    assert not leaks(shown, value)
    assert shown.startswith("befor")
    assert shown.endswith("ter\n")


@pytest.mark.parametrize(
    "text",
    ["-".join(TOKEN), repr(list(TOKEN)), "\\n".join(TOKEN), "".join(f"\\x{ord(each):02x}" for each in TOKEN),
     "".join(f"\\u{ord(each):04x}" for each in TOKEN), ", ".join(f"0x{ord(each):02x}" for each in TOKEN),
     "".join(f"%{ord(each):02X}" for each in TOKEN),
     str(list(enumerate(TOKEN))), str(dict(enumerate(TOKEN))),
     "\n".join(f"{at},{each}" for at, each in enumerate(TOKEN)),
     TOKEN.encode("utf-16-le").hex(), base64.b32encode(b"x" + TOKEN.encode()).decode(), str(list(TOKEN.encode())),
     "".join(chr(ord(each) + 0xFEE0) for each in TOKEN), " ".join(f"{ord(each):08b}" for each in TOKEN),
     f"| {' | '.join(TOKEN)} |", TOKEN[:20] + "\n" + TOKEN[20:]],
)  # fmt: skip
def test_what_code_makes_of_a_known_value_is_found(text: str) -> None:
    shown = search_of(TOKEN).masked(text)
    assert "[secret: GitHub token]" in shown
    assert not leaks(shown, TOKEN)


def test_every_piece_of_a_value_is_found_wherever_it_begins() -> None:
    search, plain = search_of(TOKEN), TOKEN.replace("_", "")
    missed = [
        plain[at : at + PIECE + 2]
        for at in range(len(plain) - PIECE - 1)
        for around in ("", "x = ", "..., and then some words: ")
        if not search.find(f"{around}{plain[at : at + PIECE + 2]} and more")
    ]
    assert not missed


def test_a_secret_of_one_result_is_known_in_the_next() -> None:
    search = search_of()
    assert search.find(TOKEN[::-1]) == ()
    assert search.secrets(f"token: {TOKEN}")
    assert search.find(TOKEN[::-1])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("correct-horse-battery-staple", "The staple of the horse battery is correct."),
        ("2026-11-28T10:00:00Z", "Released 2026-11-28T10:00:00Z."),
        ("20261128", "20261128 rows"),
        ("4111111111111111", "4111111111111111"),
        ("administration", "the administrative office"),
        ("Summer2024!", "In the summer of 2024, and in Summer 2025"),
        ("internal-database-primary", "the internal database of the primary school"),
        ("postgres://app:Zx81kQ0fLw@db.internal:5432/app", "db.internal:5432/app and postgres://app:x@db"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIA is a prefix, as ghp_ and sk-ant-api03-"),
    ],
)
def test_a_text_that_shares_a_word_a_number_or_a_date_with_a_value_is_left(value: str, text: str) -> None:
    assert search_of(value).find(text) == ()


CHOSEN = ("wrong-password1", "AdminPassword1", "Forgot?Password2", "postgres1", "superSecret42", "Summer2024!Berlin")


@pytest.mark.parametrize(
    "text",
    ["wrong_password1 = 1", "admin_password1", 'request.POST["forgot"], request.POST["password2"]', "postgres10",
     "class SuperSecret42Test:", "forgot_password2", "docker run postgres:1", "summer_2024_berlin.csv",
     "the summer of 2024, Berlin", "superSecret4", "adminPassword"],
)  # fmt: skip
def test_code_with_the_words_of_a_password_is_left(text: str) -> None:
    assert search_of(*CHOSEN).find(text) == ()


@pytest.mark.parametrize("value", CHOSEN)
@pytest.mark.parametrize(
    "command",
    ["cat", "sed 's/^/login: /'", "sed 's/.*/\"&\"/'", "tr a-z A-Z", "rev", "sed 's/./& /g'", "sed 's/./&-/g'",
     "fold -w1", "fold -w1 | cat -n", "xxd -p", "base64", "tr A-Za-z N-ZA-Mn-za-m", "xxd -p | rev"],
)  # fmt: skip
def test_a_password_made_of_words_is_found_as_it_is_and_disguised(value: str, command: str) -> None:
    value = f"{value}-4you" if len(value) < PIECE else value
    shown = search_of(value).masked(f"before\n{output(command, value)}\nafter\n")
    assert "[secret: " in shown
    assert not leaks(shown, value)


@pytest.mark.parametrize("value", ["abcdefghij" * 5 + "1Zq", "9081726354" * 1_900 + "Qz1", "Aa1!Bcd2?" * 2_000 + "\0x"])
def test_no_value_takes_long_to_look_at(value: str) -> None:
    # Values come from files of anybody: trying each way to part one into words would take hours.
    assert search_of(value).find(f"is {value} there?")


@pytest.mark.parametrize("value", ["JBSWY3DPEHPK3PXPKRSXG5DJ", "MFRGGZDFMZTWQ2LKNNWG23TP"])
def test_pieces_of_a_value_that_nobody_made_of_words_are_found(value: str) -> None:
    search = search_of(value)
    assert search.find(f"cut: {value[:14]}")
    assert search.find(f"in {value}x")


def test_random_text_and_figures_are_left() -> None:
    drawn = random.Random(7)
    search = search_of(*("".join(drawn.choices(string.ascii_letters + string.digits, k=40)) for _ in range(500)))
    numbers = "\n".join(",".join(str(drawn.randint(0, 10**9)) for _ in range(8)) for _ in range(5_000))
    letters = " ".join("".join(drawn.choices(string.ascii_lowercase, k=9)) for _ in range(30_000))
    assert search.find(numbers) == ()
    assert search.find(letters) == ()


def test_found_stretches_that_overlap_become_one() -> None:
    found = merge_overlaps([Secret(5, 9, "b"), Secret(0, 6, "a"), Secret(20, 22, "c")])
    assert [(each.start, each.end, each.kind) for each in found] == [(0, 9, "a"), (20, 22, "c")]


def test_a_value_is_not_shown_by_what_holds_it() -> None:
    search = search_of(TOKEN)
    (found,) = search.find(TOKEN)
    assert TOKEN not in repr((search, search.known, found, search.__dict__["_forms"]))


def test_context_files_and_hooks_output_are_searched_for_known_values(tmp_path: Path) -> None:
    where = UserFolders(*(tmp_path / name for name in ("config", "data", "cache", "state")))
    ingress = ingress_for(where, tmp_path)
    search_for(tmp_path).known.add([TOKEN], "GitHub token")
    (tmp_path / "AGENTS.md").write_text(f"Never print {TOKEN[::-1]}.\n")
    assert ingress.text(tmp_path / "AGENTS.md", 1_000) == "Never print [secret: GitHub token].\n"
    assert ingress.clean("-".join(TOKEN)) == "[secret: GitHub token]"
    assert ingress_for(where, tmp_path, "allow").clean(TOKEN) == TOKEN


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    rows = [f"{number},{'x' * (number % 7)},{token_of(number)}" for number in range(3_000)]
    (work / "users.csv").write_text("id,note,access_token\n" + "\n".join(rows) + "\n")
    (work / "notes.txt").write_text(f"the key is {TOKEN}\n")
    trust_folder(work)
    return work


def token_of(number: int) -> str:
    return "".join(random.Random(number).choices(string.ascii_letters + string.digits, k=36))


async def played(folder: Path, monkeypatch: pytest.MonkeyPatch, *calls: ScriptedCall, **flags: Any) -> list[Event]:
    """The events of a turn that makes these calls, one after the other."""
    steps = [*(Step(calls=(call,)) for call in calls), Step(say="Done.")]
    with ModelServer(steps) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        talk: Conversation = connect({"model": "openai/any", **flags}, folder).library.create()
        events = await collect(talk.say("look"))
        await talk.close()
    return events


async def texts_of(folder: Path, monkeypatch: pytest.MonkeyPatch, *calls: ScriptedCall, **flags: Any) -> list[str]:
    """What the model sees of results."""
    events = await played(folder, monkeypatch, *calls, **flags)
    return [event.result.text for event in events if isinstance(event, ToolFinished)]


def sql(query: str) -> ScriptedCall:
    return ScriptedCall("query_data", {"sql": query})


EXPRESSIONS = (
    "access_token[:14]", "substr(access_token, 10, 15)", "reverse(access_token)", "string_split(access_token, '')",
    "hex(access_token)", "to_base64(encode(access_token))", "upper(access_token)",
    "regexp_replace(access_token, '(.)', '\\1 ', 'g')",
)  # fmt: skip


async def test_queries_show_no_piece_of_a_column_of_secrets_and_leave_other_columns(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one session, as the engine's start takes most of the time."""
    before = (folder / "users.csv").read_bytes()
    others = "SELECT count(*) AS n, sum(id) AS total, max(note) AS longest FROM 'users.csv'"
    letters = "SELECT unnest(string_split(access_token, '')) AS letter FROM 'users.csv' WHERE id = 17"
    row = "SELECT id, {} AS part FROM 'users.csv' WHERE id IN ({}, {}) ORDER BY id"
    # Values of other rows each time: what a result showed before is known for that alone.
    ids = [(1500 + number, 4 + number) for number in range(len(EXPRESSIONS))]
    pieces = [row.format(each, *pair) for each, pair in zip(EXPRESSIONS, ids, strict=True)]
    events = await played(folder, monkeypatch, *map(sql, (others, letters, *pieces)))
    calls = [at for at, event in enumerate(events) if isinstance(event, ToolStarted)]
    results = [event.result for event in events if isinstance(event, ToolFinished)]
    kept = [at for at, event in enumerate(events) if isinstance(event, Notice) and "Kept from the model" in event.text]

    assert "3000,4498500,xxxxxx" in results[0].text
    assert "[secret" not in results[0].text
    assert not any(at < calls[1] for at in kept)
    assert (folder / "users.csv").read_bytes() == before

    assert not leaks(results[1].text, token_of(17))
    assert "[secret: " not in str(results[1].display)

    for result, expression, pair in zip(results[2:], EXPRESSIONS, ids, strict=True):
        assert result.text.count("[secret: ") >= 2, (expression, result.text)
        assert not any(leaks(result.text, token_of(number)) for number in pair), expression
    assert kept


async def test_commands_that_change_the_looks_of_a_value_that_was_read_show_nothing_of_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = ScriptedCall("read_file", {"path": "notes.txt"})
    calls = [
        ScriptedCall("shell", {"command": f"cat notes.txt | {command}"}) for command in ("rev", "xxd -p", "fold -w1")
    ]
    texts = await texts_of(folder, monkeypatch, read, *calls, permission_mode="auto")
    assert not any(leaks(text, TOKEN) for text in texts)


async def test_keys_in_the_environment_and_keys_of_ba_are_known(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERNAL_API_KEY", "qT4zW8nLx1vB6kRs0pYd")
    monkeypatch.setenv("OPENAI_API_KEY", "oK7mZ2xQ9cV4hJ1wLt5e")
    (folder / "copy.txt").write_text("qT4zW8nLx1vB6kRs0pYd"[::-1] + "\n" + " ".join("oK7mZ2xQ9cV4hJ1wLt5e"))
    (text,) = await texts_of(folder, monkeypatch, ScriptedCall("read_file", {"path": "copy.txt"}))
    assert not leaks(text, "qT4zW8nLx1vB6kRs0pYd")
    assert not leaks(text, "oK7mZ2xQ9cV4hJ1wLt5e")


async def test_pieces_of_a_value_that_the_user_shares_are_shared_too() -> None:
    sharing = SecretSharing("ask", search_of(TOKEN))
    whole, piece = TOKEN, f"begins {TOKEN[:20]}, backwards {TOKEN[::-1]}"
    found = await sharing.looked(whole)
    assert sharing.open(whole, found)
    sharing.settle(whole, found, share=True)
    assert sharing.withheld(piece, await sharing.looked(piece)) == ()
    sharing.settle(whole, found, share=False)
    assert len(sharing.withheld(piece, await sharing.looked(piece))) == 2


def test_a_large_text_costs_little_and_the_index_grows_by_what_is_new() -> None:
    drawn = random.Random(5)
    search = search_of(*("".join(drawn.choices(string.ascii_letters + string.digits, k=40)) for _ in range(200)))
    search.prepare()
    before = dict(search.__dict__["_grams"])
    search.known.add([TOKEN], "GitHub token")
    assert not search.settled
    search.prepare()
    grown = search.__dict__["_grams"]
    assert search.settled
    assert before.items() <= grown.items()
    assert 0 < len(grown) - len(before) < 1_000
