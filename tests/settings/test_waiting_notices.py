"""What is said at the start of settings that wait for the user: one notice for each file, short enough to read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.resources import places
from ba_tui.settings import load_settings

MANY = """\
add_dirs: [/opt/a, /opt/b]
web: {allow_private: [10.0.0.0/8]}
web_search: {url: "http://127.0.0.1:9/s"}
memory: {project: finance}
system_prompt_file: /opt/p.md
providers: {corp: {base_url: "http://127.0.0.1:9/v1"}}
model: corp/x
sandbox: "off"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".ba").mkdir(parents=True)
    return folder


@pytest.mark.parametrize(("trusted", "attended", "lines"), [(False, True, 0), (False, False, 1), (True, True, 2)])
def test_what_waits_for_the_user_is_one_notice_for_a_file(
    project: Path, trusted: bool, attended: bool, lines: int
) -> None:
    file = project / ".ba" / "config.yaml"
    file.write_text(MANY)
    found = load_settings({}, places(), project, {}, trusted=trusted)
    notices = found.notices(attended=attended)
    assert len(notices) == lines
    for notice in notices:
        assert notice.text.startswith(str(file))
        assert len(f"{notice.text} {notice.hint}".removeprefix(str(file))) < 200, "at most two lines"
    assert [notice.hint for notice in notices if "until you allow" in notice.text] == (
        ["/trust asks about each again."] if trusted else []
    )


def test_a_script_reads_how_to_allow_each_value(project: Path) -> None:
    (project / ".ba" / "config.yaml").write_text(MANY)
    found = load_settings({}, places(), project, {}, trusted=True)
    hints = [notice.hint for notice in found.notices(attended=False)]
    for each in found.asked:
        assert any(f"--allow-setting {each.setting}={each.value}" in hint for hint in hints)
