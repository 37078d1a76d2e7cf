"""What commands that only read see of files with secrets: masked copies, whatever they do with the text."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ba_tui.core.effects import READING, WORKING, Profile
from ba_tui.permissions.sandbox.confinement import NotHidden, Sandbox, find
from ba_tui.permissions.sandbox.layout import bubblewraps
from ba_tui.permissions.sandbox.workspace_scan import FileReach
from ba_tui.permissions.secrets.content_scan import ContentScan
from ba_tui.permissions.secrets.masked_copies import MaskedCopies
from ba_tui.permissions.secrets.masking import KnownSecrets, MaskPlaces, ScanOrder

FOUND = find(bubblewraps())
pytestmark = pytest.mark.skipif(FOUND.mechanism is None, reason="bubblewrap does not work here")
TOKEN = "ghp_" + "q7Rk82hVn51xLzQ4mTb9" * 2
WORD = "correcthorse"
SECONDS = 60.0

SPELLINGS = (
    "cat {f}", "rev {f}", "tac {f} | rev", "xxd -p {f}", "cut -c1-20 {f}", "cut -c3- {f}", "sed 's/./& /g' {f}",
    "base64 -w0 {f}", "od -An -c {f}", "od -An -tx1 {f}", "tr a-zA-Z b-zaB-ZA < {f}", "fold -w1 {f}", "sort {f}",
    "awk '{{for(i=length($0);i>0;i--)printf \"%s-\",substr($0,i,1)}}' {f}", "head -c 60 {f} | rev",
    "gzip -c {f} | zcat",
    "grep -o . {f} | tr -d '\\n'", "dd if={f} bs=1 2>/dev/null", "nl {f}",
    "while read -r l; do echo \"${{l:4:9}}\"; done < {f}",
    "python3 -c \"print('-'.join(open('{f}').read()))\"", "python3 -c \"print(open('{f}').read()[::-1])\"",
    "python3 -c \"print([ord(c) ^ 1 for c in open('{f}').read()])\"", "mkdir /tmp/c && cp {f} /tmp/c/x && rev /tmp/c/x",
    "tar cO {f} | strings -n 1",
)  # fmt: skip


class Shop:
    """A workspace with secrets, and its sandbox."""

    def __init__(self, root: Path, base: Path) -> None:
        self.root, self.known = root, KnownSecrets()
        self.places = MaskPlaces(base / "masks", base / "searched", self.known)
        self.sandbox = Sandbox(FileReach((root,)), look=lambda: FOUND, masks=self.places)

    def search(self) -> None:
        content = self.sandbox.masks.content
        assert content.settle(content.begin(), SECONDS)

    def run(self, script: str, profile: Profile = READING, *, originals: bool = False) -> str:
        held = self.sandbox.confine(profile, originals=originals)
        assert held
        words = held.wrap(["/bin/bash", "-c", f"cd {self.root} && {script}"])
        env = {**os.environ, **held.environment}
        done = subprocess.run(words, env=env, capture_output=True, timeout=SECONDS, check=False)
        return done.stdout.decode("utf-8", "replace") + done.stderr.decode("utf-8", "replace")


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    root = tmp_path / "work"
    root.mkdir()
    (root / ".env").write_text(f"TOKEN={TOKEN}\nPASSWORD={WORD}\n")
    (root / "notes.csv").write_text(f"name,amount,note\nAnn,12.50,{TOKEN}\nBob,7.25,none\n")
    (root / "clean.txt").write_text("nothing\n")
    made = Shop(root, tmp_path / "cache")
    yield made
    made.sandbox.close()


def pieces(value: str) -> set[str]:
    """Every piece of six characters, also reversed, shifted by a letter, spaced away and as hexadecimal digits."""
    shifted = value.translate({ord(a): b for a, b in zip(_LETTERS, _LETTERS[1:] + _LETTERS[:1], strict=True)})
    texts = (value, value[::-1], shifted)
    return {text[at : at + 6] for text in texts for at in range(len(value) - 5)} | {value.encode().hex()[:24]}


_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def shows(output: str, value: str) -> list[str]:
    plain = re.sub(r"[\s\-,\[\]']+", "", output)
    return [piece for piece in pieces(value) if piece in output or piece in plain]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_shows_a_secret_or_a_piece_of_it(shop: Shop, spelling: str) -> None:
    shop.search()
    for name in (".env", "notes.csv"):
        output = shop.run(spelling.format(f=name))
        assert output.strip(), spelling
        assert not shows(output, TOKEN), output
        assert not shows(output, WORD), output


def test_nothing_but_the_secret_is_masked_and_the_size_stays(shop: Shop) -> None:
    shop.search()
    masked = "masked-by-ba".ljust(len(TOKEN), "x")
    assert shop.run("cat notes.csv") == f"name,amount,note\nAnn,12.50,{masked}\nBob,7.25,none\n"
    assert shop.run("cat .env") == f"TOKEN={masked}\nPASSWORD=masked-by-ba\n"
    sizes = [str((shop.root / name).stat().st_size) for name in (".env", "notes.csv")]
    assert shop.run("stat -c %s .env notes.csv").split() == sizes
    assert shop.run("stat -c %Y notes.csv").strip() == str(int((shop.root / "notes.csv").stat().st_mtime))
    assert (shop.root / ".env").read_text() == f"TOKEN={TOKEN}\nPASSWORD={WORD}\n"


def test_working_hides_files_named_as_secret_only_and_the_engine_too(shop: Shop) -> None:
    shop.search()
    assert TOKEN in shop.run("cat notes.csv", WORKING)
    assert not shows(shop.run("rev .env", WORKING), TOKEN)
    assert TOKEN in shop.run("cat notes.csv", originals=True)
    assert not shows(shop.run("rev .env", originals=True), TOKEN)


def test_a_file_that_changed_since_the_search_is_masked_as_it_is_now(shop: Shop) -> None:
    shop.search()
    other = "ghp_" + "Zt5Wm81pQc73yNvB6sKd" * 2
    notes = shop.root / "notes.csv"
    times = notes.stat()
    notes.write_text(notes.read_text().replace(TOKEN, other))
    os.utime(notes, ns=(times.st_atime_ns, times.st_mtime_ns))
    for output in (shop.run("rev notes.csv"), shop.run("cat notes.csv")):
        assert not shows(output, other)
    (shop.root / "moved").write_text(f"x {other}\n")
    (shop.root / "moved").replace(notes)
    assert not shows(shop.run("rev notes.csv"), other)
    (shop.root / ".env").write_text(f"A={other}")
    assert not shows(shop.run("rev .env"), other)
    notes.write_text("no secret any more\n")
    assert shop.run("cat notes.csv") == "no secret any more\n"


def test_new_files_are_found_by_the_next_search_and_unchanged_ones_are_not_opened(shop: Shop) -> None:
    shop.search()
    (shop.root / "new.json").write_text(f'{{"token": "{TOKEN}"}}')
    os.link(shop.root / "new.json", shop.root / "twin.json")
    shop.search()
    assert not shows(shop.run("rev new.json twin.json"), TOKEN)
    assert shop.places.kept
    kept = shop.places.kept.read_bytes()
    assert TOKEN.encode() not in kept
    assert len(kept) == 8


def test_what_the_user_lets_commands_read_is_not_masked(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text(f"a,{TOKEN}\n")
    (tmp_path / ".env").write_text(f"A={TOKEN}\n")
    readable = (tmp_path / "notes.csv", tmp_path / ".env")
    sandbox = Sandbox(FileReach((tmp_path,), readable=readable), look=lambda: FOUND)
    content = sandbox.masks.content
    assert content.settle(content.begin(), SECONDS)
    held = sandbox.confine(READING)
    assert held
    done = subprocess.run(held.wrap(["cat", *map(str, readable)]), capture_output=True, text=True, check=True)
    assert done.stdout == f"a,{TOKEN}\nA={TOKEN}\n"
    sandbox.close()


def test_copies_are_private_and_go_with_the_session(shop: Shop, tmp_path: Path) -> None:
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    left = tmp_path / "cache" / "masks" / f"{dead.stdout.strip()}-left"
    left.mkdir(parents=True)
    shop.search()
    shop.run("true")
    (folder,) = (tmp_path / "cache" / "masks").iterdir()
    assert folder != left
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    copies = list(folder.iterdir())
    assert copies
    assert {stat.S_IMODE(copy.stat().st_mode) for copy in copies} == {0o600}
    assert not [copy for copy in copies if TOKEN.encode() in copy.read_bytes()]
    shop.sandbox.close()
    assert not list((tmp_path / "cache" / "masks").iterdir())


def test_the_values_that_masks_hide_are_known(shop: Shop) -> None:
    shop.search()
    shop.run("true")
    assert {TOKEN, WORD} <= shop.known.values().keys()


def test_beyond_the_limit_nothing_reads_without_a_question(shop: Shop) -> None:
    for number in range(201):
        (shop.root / f"{number}.txt").write_text(f"token {TOKEN}{number}\n")
    shop.search()
    assert "203 files with secrets" in shop.sandbox.unheld()
    with pytest.raises(NotHidden):
        shop.sandbox.confine(READING)


def test_files_that_are_no_text_too_large_or_odd_stop_nothing(shop: Shop) -> None:
    os.mkfifo(shop.root / "pipe")
    (shop.root / "loop").symlink_to(".")
    (shop.root / "link.csv").symlink_to("notes.csv")
    (shop.root / os.fsdecode(b"n\xff.txt")).write_text(f"token {TOKEN}\n")
    (shop.root / "large.txt").write_text(f"token {TOKEN}\n" + "x\n" * 600_000)
    (shop.root / "big.tfstate").write_text(f'{{"token": "{TOKEN}", "x": "' + "x" * 1_200_000 + '"}')
    (shop.root / "vault.kdbx").write_bytes(b"\0\1" + TOKEN.encode())
    shop.search()
    assert not shows(shop.run("rev n*.txt link.csv; cat vault.kdbx; head -c 200 big.tfstate"), TOKEN)
    assert shop.run("stat -c %s big.tfstate").strip() == str((shop.root / "big.tfstate").stat().st_size)
    assert "ba hides big.tfstate" in shop.run("head -1 big.tfstate | tr -d '\\0'")


def searches() -> set[str]:
    """The processes of this test's process that search for secrets."""
    command = ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(os.getpid())]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in listed.splitlines() if "content_process" in line}


def test_the_search_ends_with_the_session(shop: Shop) -> None:
    before = searches()
    shop.search()
    (process,) = searches() - before
    shop.sandbox.close()
    assert process not in searches()


def test_an_idle_search_ends_its_process_and_the_next_pass_sees_what_changed(shop: Shop) -> None:
    before = searches()
    copies = MaskedCopies(lambda: shop.root.parent, shop.known, str)
    order = ScanOrder((str(shop.root),), (), str(shop.root.parent), "")
    content = ContentScan(lambda: order, copies, shop.known, idle=0.05)
    (shop.root / "gone.txt").write_text(f"token {TOKEN}\n")
    assert content.settle(content.begin(), SECONDS)
    assert {path.name for path in content.masks()} == {"notes.csv", "gone.txt"}
    psutil.wait_procs([psutil.Process(int(each)) for each in searches() - before], timeout=SECONDS)
    assert not searches() - before
    assert content.count() == 2
    (shop.root / "gone.txt").unlink()
    (shop.root / "new.txt").write_text(f"token {TOKEN}\n")
    content.settle_if_quick(content.begin())
    assert content.settle(content.begin(), SECONDS)
    assert {path.name for path in content.masks()} == {"notes.csv", "new.txt"}
    assert content.count() == 2
    content.close()
    assert not searches() - before
