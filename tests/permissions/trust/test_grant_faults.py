"""Grants of trust when a file operation fails or the process ends at any one of them."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.ports.permissions import AskedSetting, ToolWrite
from ba_tui.permissions.trust import grants
from ba_tui.permissions.trust.files import TrustFile
from ba_tui.permissions.trust.grants import MOST_NAMED, Trust, asked_once
from ba_tui.resources import UserFolders
from ba_tui.settings.document import load_mapping
from ba_tui.settings.layers import AllowedSettings
from tests.noticing.file_faults import Layer, crashes, failures, operations, readable_by_others, unsynced


def where(folder: Path) -> UserFolders:
    return UserFolders(folder / "config", folder / "data", folder / "cache", folder / "state")


def project(folder: Path, name: str = "project") -> Path:
    return folder / name


def grant(folder: Path, name: str = "project") -> None:
    trust = Trust(where(folder))
    trust.grant(trust.look(project(folder, name)))


@pytest.fixture
def made(tmp_path: Path) -> Callable[[], Path]:
    """Makes a folder with two projects, of which ``other`` is trusted, anew at each call."""
    folder, template = tmp_path / "world", tmp_path / "template"
    for name in ("project", "other"):
        (project(folder, name) / ".ba" / "tools").mkdir(parents=True)
        (project(folder, name) / ".ba" / "tools" / "a.py").write_text("A = 1\n")
    grant(folder, "other")
    folder.rename(template)

    def new() -> Path:
        shutil.rmtree(folder, ignore_errors=True)
        return shutil.copytree(template, folder)

    return new


def trusted(folder: Path, name: str = "project") -> bool:
    return Trust(where(folder)).trusted(project(folder, name))


def free(folder: Path) -> bool:
    number = os.open(where(folder).trusted.parent, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(number)
    return True


def others_read(folder: Path) -> list[str]:
    """What other users may read of the grants, their folder, and the copies of what was trusted."""
    places = where(folder)
    return readable_by_others(places.config) + readable_by_others(places.vouched)


def lasting(work: Callable[[], object]) -> set[str]:
    """The files that a power cut may lose. Notes of unfinished files serve only to clear them away."""
    return {path for path in unsynced(operations(work)) if "/unfinished/" not in path}


@pytest.mark.parametrize("revoking", [False, True])
def test_a_grant_and_its_end_count_whole_or_the_error_is_told(made: Callable[[], Path], revoking: bool) -> None:
    told: list[StorageError] = []

    def world() -> Path:
        folder = made()
        if revoking:
            grant(folder)
        return folder

    def work(folder: Path) -> None:
        told.clear()
        try:
            if revoking:
                Trust(where(folder)).revoke(project(folder))
            else:
                grant(folder)
        except StorageError as error:
            told.append(error)

    for folder, layer in failures(work, world, errno.ENOSPC, lasting=(False,)):
        failed = layer.done[layer.at or 0]
        assert trusted(folder) != revoking or told, failed
        assert trusted(folder, "other"), failed
        assert free(folder)
        for error in told:
            assert error.hint
        work(folder) if trusted(folder) == revoking else None
        assert trusted(folder) != revoking
        assert others_read(folder) == []


@pytest.mark.parametrize("revoking", [False, True])
def test_a_crash_at_any_operation_leaves_the_grants_whole(made: Callable[[], Path], revoking: bool) -> None:
    def world() -> Path:
        folder = made()
        if revoking:
            grant(folder)
        return folder

    def work(folder: Path, acknowledge: Callable[[str], None]) -> None:
        Trust(where(folder)).revoke(project(folder)) if revoking else grant(folder)
        acknowledge("done")

    for folder, acknowledged in crashes(work, world):
        assert trusted(folder, "other")
        assert not acknowledged or trusted(folder) != revoking
        assert others_read(folder) == []
        assert free(folder)


def test_a_grant_and_its_end_are_on_the_disk(made: Callable[[], Path]) -> None:
    folder = made()
    assert lasting(lambda: grant(folder)) == set()
    done = operations(lambda: Trust(where(folder)).revoke(project(folder)))
    assert [each.name for each in done].index("fsync") < [each.name for each in done].index("replace")
    assert others_read(folder) == []
    assert not [*where(folder).vouched.glob(f"*{project(folder).name}*")], "so are its copies"


def test_a_revoked_folder_is_not_trusted_even_when_its_copies_stay(made: Callable[[], Path]) -> None:
    folder = made()
    grant(folder)
    last = len(operations(lambda: Trust(where(folder)).revoke(project(folder)))) - 1
    grant(folder)
    with Layer(last, errno.EACCES).laid(), pytest.raises(StorageError, match="is not trusted any more") as told:
        Trust(where(folder)).revoke(project(folder))
    assert "delete it" in told.value.hint
    assert not trusted(folder)


def test_the_end_of_a_grant_ends_what_was_allowed_there_and_nothing_else(made: Callable[[], Path]) -> None:
    folder = made()
    allowed, asked = AllowedSettings(where(folder)), AskedSetting("memory.project", "shop", "to use a name", "config")
    for name in ("project", "other"):
        grant(folder, name)
        Trust(where(folder)).allow(project(folder, name), asked)
    assert Trust(where(folder)).revoke(project(folder))
    assert allowed.of(project(folder)) == set()
    assert allowed.of(project(folder, "other")) == {("memory.project", "shop")}
    assert trusted(folder, "other")
    # Also where there is no grant any more.
    Trust(where(folder)).allow(project(folder), asked)
    assert not Trust(where(folder)).revoke(project(folder))
    assert allowed.of(project(folder)) == set()


def test_grants_stay_in_their_order(made: Callable[[], Path]) -> None:
    folder = made()
    project(folder, "another").mkdir()
    for name in ("project", "another"):
        grant(folder, name)
    names = [str(project(folder, name)) for name in ("other", "project", "another")]
    assert list(load_mapping(where(folder).trusted)) == names
    Trust(where(folder)).revoke(project(folder, "other"))
    assert list(load_mapping(where(folder).trusted)) == names[1:]


def test_the_end_of_a_grant_ends_trust_for_this_run_too(made: Callable[[], Path]) -> None:
    folder = made()
    trust = Trust(where(folder))
    trust.for_this_run(trust.look(project(folder)))
    assert trust.trusted(project(folder))
    trust.revoke(project(folder))
    assert not trust.trusted(project(folder))


def test_a_change_is_seen_though_what_was_known_is_kept(
    made: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times of files count as settled at once here, so that fingerprints and grants are remembered."""
    monkeypatch.setattr(grants, "_SETTLED", -(10**18))
    folder = made()
    assert not trusted(folder)
    grant(folder)
    assert trusted(folder)
    with monkeypatch.context() as patch:
        patch.setattr(TrustFile, "content", _unreadable)
        assert trusted(folder), "what did not change is not read again"
    tool = project(folder) / ".ba" / "tools" / "a.py"
    tool.write_text("A = 22\n")
    assert not trusted(folder)
    tool.write_text("A = 1\n")
    assert trusted(folder)
    Trust(where(folder)).revoke(project(folder))
    assert not trusted(folder)


def _unreadable(file: TrustFile) -> bytes:
    raise OSError(errno.EIO, "Input/output error")


def test_a_fingerprint_is_the_same_in_every_version(made: Callable[[], Path]) -> None:
    """Another one would take away all trust."""
    folder = made()
    seen = Trust(where(folder)).look(project(folder))
    assert seen.fingerprint == "dc11040cc51e803dfe47342d46a216565d6eb94057879610d72a12375b2ef42e"


def test_settings_that_trust_does_not_allow_are_told(made: Callable[[], Path]) -> None:
    folder = made()
    trust = Trust(where(folder))
    assert trust.look(project(folder)).refused == ()
    (project(folder) / ".ba" / "config.yaml").write_text("none: 1\nmemory: {project: shop}\n")
    (told,) = trust.look(project(folder)).refused
    assert told.startswith(".ba/config.yaml:1: none: unknown setting")
    assert [asked.setting for asked in trust.asked(project(folder))] == ["memory.project"]


@pytest.mark.parametrize(("files", "more"), [(MOST_NAMED, ""), (MOST_NAMED + 2, " and 2 more")])
def test_files_that_tools_wrote_are_named_up_to_a_number(made: Callable[[], Path], files: int, more: str) -> None:
    folder = made()
    wrote = tuple(
        ToolWrite(project(folder) / f"{number}.py", f"{number}.py", "`make`", "", runs=True, digest="d")
        for number in range(files)
    )
    trust = Trust(where(folder))
    seen = replace(trust.look(project(folder)), written=wrote)
    with pytest.raises(UsageError, match="tools wrote files that decide what runs") as told:
        trust.vouch(seen, [project(folder) / "not.py"])
    names = "; ".join(one.line for one in wrote[:MOST_NAMED])
    assert f"({names}{more})" in str(told.value)
    assert not trust.trusted(project(folder))
    trust.vouch(seen, [one.path for one in wrote])
    assert trust.trusted(project(folder))


def test_who_asks_once_within_asking_once_does_not_end_it(made: Callable[[], Path]) -> None:
    folder = made()
    trust = Trust(where(folder))
    with asked_once():
        assert not trust.trusted(project(folder))
        with asked_once():
            assert not trust.trusted(project(folder))
        grant(folder)
        assert not trust.trusted(project(folder)), "it was asked before"
    assert trust.trusted(project(folder))


def test_a_folder_that_cannot_be_looked_through_is_not_trusted_and_says_why(
    made: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made()
    grant(folder)
    trust = Trust(where(folder))

    def too_much(root: Path, own: Path) -> list[TrustFile]:
        raise UsageError("Too much.", "Remove some.")

    def broken(*where: object, **options: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(grants, "found_in", too_much)
    assert "Too much. Remove some." in trust.look(project(folder)).trouble
    assert trust.trusted(project(folder)) is False
    monkeypatch.setattr(grants, "load_settings", broken)
    assert trust.asked(project(folder)) == ()
