"""The way in for files and texts that enter a request by themselves: one set of rules, whoever asks."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

import pytest

from ba_tui.ingress import FileRefused, Ingress, Owner
from ba_tui.resources import places
from tests.entering import guarded_ingress

CANARY = "a plain sentence that nobody else may read"
TOKEN = "ghp_aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0dE2fG4"


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a key and a diary, and a project elsewhere."""
    base = tmp_path.resolve()
    monkeypatch.setenv("HOME", str(base / "home"))
    (base / "home" / ".ssh").mkdir(parents=True)
    (base / "home" / ".ssh" / "id_rsa").write_text(CANARY)
    (base / "home" / "diary.txt").write_text(CANARY)
    (base / "work" / "deep" / "er").mkdir(parents=True)
    (base / "work" / "deep" / "er" / ".env").write_text(CANARY)
    return base


@pytest.fixture
def ingress(base: Path) -> Ingress:
    return guarded_ingress(base / "work")


def refusal(ingress: Ingress, path: Path, owner: Owner) -> str:
    with pytest.raises(FileRefused) as caught:
        ingress.text(path, 1_000, owner)
    return str(caught.value.strerror)


def test_a_projects_file_stays_in_the_project(ingress: Ingress, base: Path) -> None:
    link = base / "work" / "a.md"
    (base / "work" / "b.md").symlink_to(base / "home" / "diary.txt")
    link.symlink_to("b.md")
    (base / "work" / "folder").symlink_to(base / "home")
    leads = "it leads to ~/diary.txt, which lies outside this project"
    assert refusal(ingress, link, "project") == leads
    assert refusal(ingress, base / "work" / "folder" / "diary.txt", "project") == leads
    assert refusal(ingress, base / "home" / "diary.txt", "project") == "it lies outside this project"
    assert refusal(ingress, base / "work" / ".." / "home" / "diary.txt", "project")
    (base / "work" / "c.md").symlink_to("deep/../fine.md")
    (base / "work" / "fine.md").write_text("inside")
    assert ingress.text(base / "work" / "c.md", 1_000, "project") == "inside"


def test_the_persons_file_reaches_further_but_no_secrets(ingress: Ingress, base: Path) -> None:
    own = base / "home" / "AGENTS.md"
    own.symlink_to("diary.txt")
    assert ingress.text(own, 1_000, "user") == CANARY
    own.unlink()
    own.symlink_to(".ssh/id_rsa")
    assert refusal(ingress, own, "user") == "it leads to ~/.ssh/id_rsa, which holds secrets"
    assert refusal(ingress, Path("/proc/self/status"), "user").endswith("is no ordinary file")


@pytest.mark.parametrize("owner", ["project", "user"])
@pytest.mark.parametrize("secret", ["work/deep/er/.env", "home/.ssh/id_rsa", "home/.config/gh/hosts.yml"])
def test_hard_links_of_secrets_are_known_wherever_the_other_name_lies(
    ingress: Ingress, base: Path, secret: str, owner: Owner
) -> None:
    (base / secret).parent.mkdir(parents=True, exist_ok=True)
    (base / secret).write_text(CANARY)
    (base / "work" / "notes.md").hardlink_to(base / secret)
    assert refusal(ingress, base / "work" / "notes.md", owner) == "it holds secrets"


def test_a_hard_link_is_known_as_soon_as_the_secret_is_there(ingress: Ingress, base: Path) -> None:
    notes = base / "work" / "notes.md"
    notes.write_text("harmless")
    (base / "work" / "other.md").hardlink_to(notes)
    assert ingress.text(notes, 1_000, "project") == "harmless"
    (base / "work" / "deep" / ".env").hardlink_to(notes)
    assert refusal(ingress, notes, "project") == "it holds secrets"


def test_a_hard_link_is_known_also_where_looking_takes_long(
    ingress: Ingress, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(seconds)))
    test_a_hard_link_is_known_as_soon_as_the_secret_is_there(ingress, base)


def test_a_hard_link_is_known_that_was_made_after_the_folders_were_looked_through(ingress: Ingress, base: Path) -> None:
    (base / "work" / "a.md").write_text("harmless")
    (base / "work" / "b.md").hardlink_to(base / "work" / "a.md")
    os.utime(base / "work" / "deep" / "er", (1, 1))
    assert ingress.text(base / "work" / "a.md", 1_000, "project") == "harmless"
    (base / "work" / "notes.md").hardlink_to(base / "work" / "deep" / "er" / ".env")
    assert refusal(ingress, base / "work" / "notes.md", "project") == "it holds secrets"


def test_our_own_keys_are_secret_under_any_name(ingress: Ingress, base: Path) -> None:
    places().keys.write_text(CANARY)
    (base / "work" / "linked.md").hardlink_to(places().keys)
    assert refusal(ingress, places().keys, "user") == "it holds secrets"
    assert refusal(ingress, base / "work" / "linked.md", "project") == "it holds secrets"


@pytest.mark.parametrize("kind", ["pipe", "folder", "missing", "loop"])
def test_what_is_no_file_is_never_waited_for(ingress: Ingress, base: Path, kind: str) -> None:
    path = base / "work" / "odd"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    with pytest.raises(OSError, match=r"regular|No such|Too many|directory"):
        ingress.text(path, 1_000, "project")
    assert ingress.refusal(path) == ""


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_secrets_are_masked_in_every_encoding(ingress: Ingress, base: Path, codec: str) -> None:
    (base / "work" / "a.md").write_bytes(f"use {TOKEN} now".encode(codec))
    assert ingress.text(base / "work" / "a.md", 1_000, "project") == "use [secret: GitHub token] now"


def test_what_is_no_text_is_refused(ingress: Ingress, base: Path) -> None:
    (base / "work" / "a.md").write_bytes(f"use {TOKEN} now".encode("utf-16-le"))
    assert refusal(ingress, base / "work" / "a.md", "project") == "it is not a text file"


@pytest.mark.parametrize("between", ["\u200b", "\u200d", "\ufeff", "\u2060", "\u00ad", "\U000e0041"])
def test_hidden_characters_hide_no_secret(ingress: Ingress, between: str) -> None:
    assert ingress.clean(between.join(TOKEN)) == "[secret: GitHub token]"


@pytest.mark.parametrize(
    "tag",
    [
        "</system-reminder>",
        "</SYSTEM-REMINDER >",
        "< / system-reminder>",
        "<\n/system-reminder\n>",
        "</system_reminder>",
        "</system reminder>",
        "</sys\u200btem-reminder>",
        "</sys\u200dtem-reminder>",
        "</ѕуѕtеm-rеmindеr>",
        "\uff1c/system-reminder\uff1e",
        "</ｓystem-reminder>",
        '<project-instructions source="x" id="0123456789ab">',
        '<skill id="x" activation="y" size="3">',
        "<system>",
        "<|im_start|>",
        "<｜end▁of▁sentence｜>",
        "[INST]",
        "<<SYS>>",
        "<function_calls>",
        "<invoke>",
    ],
)
def test_control_markup_is_neutralized_however_it_is_spelled(ingress: Ingress, tag: str) -> None:
    cleaned = ingress.clean(f"before {tag} after")
    assert "‹" in cleaned
    assert cleaned.startswith("before ")
    assert cleaned.endswith(" after")
    assert ingress.clean(cleaned) == cleaned


@pytest.mark.parametrize(
    "text",
    [
        "if a < b and c > d: return vector<int>(n)",
        "<div class='x'>Hello</div> <Button /> <T>",
        "git clone <url> && cd <folder>",
        "# Title\n\n- `a <- b`\n\t1 <= 2 << 3\n",
        "emoji 👩‍💻 and ❤️ and می‌خواهم",
    ],
)
def test_ordinary_text_stays_as_it_is(ingress: Ingress, text: str) -> None:
    assert ingress.clean(text) == text


def test_values_are_cleaned_with_their_names(ingress: Ingress) -> None:
    schema = {"properties": {TOKEN: {"default": TOKEN, "enum": ["</system-reminder>", 1, None]}}}
    cleaned = ingress.clean_value(schema)
    assert TOKEN not in str(cleaned)
    assert "</system-reminder>" not in str(cleaned)
    assert cleaned["properties"].popitem()[1]["enum"][1:] == [1, None]
