"""What a skill needs is installed once, after the user agreed, into an environment of its own."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from ba_tui.core.events import Judged, ToolProgress
from ba_tui.core.questions import Reply
from ba_tui.core.results import CommandText
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.sandbox.workspace_scan import FileReach
from ba_tui.permissions.verdicts import Allow, Ask, Deny, JudgedCall
from ba_tui.skills.dependencies import Environments, Requirements, find_uv, read_requirements
from ba_tui.tools.command_runner import CommandRunner
from tests.tools.builtin.test_skill_scripts import Kit, kit
from tests.tools.running.processes import all_gone, floor, printed, until_printed

__all__ = ["floor", "kit"]

IMPORTS = "import greeting, sys\nprint(greeting.WORD, sys.prefix.split('/')[-2])"


def make_wheel(folder: Path, name: str = "greeting", version: str = "1.0") -> Path:
    """A package that only this folder has."""
    folder.mkdir(parents=True, exist_ok=True)
    about = f"{name}-{version}.dist-info"
    path = folder / f"{name}-{version}-py3-none-any.whl"
    files = {
        f"{name}.py": "WORD = 'hello'\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{each},,\n" for each in (*files, f"{about}/RECORD"))
    with zipfile.ZipFile(path, "w") as wheel:
        for each, text in {**files, f"{about}/RECORD": record}.items():
            wheel.writestr(each, text)
    return path


@pytest.fixture
def needy(kit: Kit) -> Kit:
    """A skill that needs a package."""
    make_wheel(kit.folder / "wheels")
    kit.write("requirements.txt", f"--no-index\n--find-links {kit.folder / 'wheels'}\ngreeting==1.0  # a word\n")
    kit.write("scripts/x.py", IMPORTS)
    return kit


def wanted(kit: Kit) -> Requirements:
    found = read_requirements("pdf", kit.folder)
    assert found is not None
    return found


async def test_it_is_installed_once_when_the_person_agrees(needy: Kit) -> None:
    assert (await needy.run("x.py")).text == "hello skills"
    (question,) = needy.asked
    assert (question.kind, question.tool, question.rule) == ("permission", "install_requirements", None)
    assert question.text == "Install packages for the skill pdf?"
    assert question.risks == ("network", "runs a command")
    assert isinstance(question.preview, CommandText)
    assert "# greeting==1.0" in question.preview.command
    assert any("--find-links" in warning for warning in question.warnings)
    assert "Installing what the skill pdf needs: greeting" in printed(needy.harness)
    assert (await needy.run("x.py")).text == "hello skills"
    assert len(needy.asked) == 1
    assert [event.verdict for event in needy.harness.events if isinstance(event, Judged)] == ["allow"]
    needy.write("requirements.txt", "--no-index\ngreeting==1.0\n")
    needy.reply = Reply("deny", "later")
    refused = await needy.run("x.py")
    assert refused.error is not None
    assert refused.error.kind == "permission_denied"
    assert "The skill pdf needs greeting, and installing that was not allowed. later" in refused.text
    assert "all else of the skill can be used" in refused.text


async def test_a_package_that_a_call_asks_for_is_asked_about_by_name(kit: Kit) -> None:
    make_wheel(kit.folder / "wheels")
    kit.write("requirements.txt", f"--no-index\n--find-links {kit.folder / 'wheels'}\n")
    kit.write("scripts/x.py", IMPORTS)
    rules = {"install_requirements(pdf)"}

    def judge(asked: JudgedCall) -> Allow | Ask:
        rule = f"{asked.tool.name}({asked.tool.target(asked.args)})"
        return Allow(rule) if rule in rules else Ask("", rule)

    kit.equip(CommandRunner(None, judge))
    assert 'call again with packages: ["greeting"]' in (await kit.run("x.py")).text
    kit.asked.clear()
    assert (await kit.run("x.py", packages=["greeting>=1.0"])).text == "hello skills"
    (question,) = kit.asked
    assert question.args == {"skill_id": "pdf", "packages": ["greeting>=1.0"]}
    assert isinstance(question.preview, CommandText)
    assert "uv pip install -r skills/pdf/requirements.txt 'greeting>=1.0'" in question.preview.command
    assert (await kit.run("x.py", packages=["greeting>=1.0"])).text == "hello skills"
    assert len(kit.asked) == 1


async def test_without_uv_the_error_names_the_extra_and_nothing_is_asked(needy: Kit, tmp_path: Path) -> None:
    needy.environments = Environments(tmp_path / "cache" / "skills", lambda: None)
    needy.equip()
    refused = await needy.run("x.py")
    assert refused.error is not None
    assert refused.error.kind == "dependency_error"
    message = "The skill pdf needs greeting; ba installs packages with uv, which was not found."
    assert refused.error.message.startswith(message)
    assert "pip install 'ba-tui[skills]'" in refused.text
    assert needy.asked == []
    assert not needy.environments.place(wanted(needy)).exists()


def test_uv_of_the_user_comes_before_that_of_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "uv"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_uv() == str(own)
    own.unlink()
    assert find_uv() == str(Path(sysconfig.get_path("scripts"), "uv"))


async def test_a_rule_allows_the_installation_without_a_question(needy: Kit) -> None:
    needy.equip(CommandRunner(None, lambda asked: Allow(f"{asked.tool.name}({asked.tool.target(asked.args)})")))
    assert (await needy.run("x.py")).text == "hello skills"
    assert needy.asked == []
    (judged,) = [event for event in needy.harness.events if isinstance(event, Judged)]
    assert (judged.by, judged.rule) == ("rule", "install_requirements(pdf)")


async def test_what_can_t_be_had_is_said_and_nothing_is_left(kit: Kit) -> None:
    kit.write("requirements.txt", "--no-index\nnobody-made-this>=2\n")
    kit.write("scripts/x.py", "print(1)")
    kit.write("scripts/y.sh", "echo fine")
    result = await kit.run("x.py")
    assert result.error is not None
    assert result.error.kind == "dependency_error"
    assert "needs nobody-made-this: nobody-made-this was not found in the package index" in result.text
    assert "Tell the user to correct pdf/requirements.txt." in result.text
    assert not kit.environments.place(wanted(kit)).exists()
    assert (await kit.run("y.sh")).text == "fine", "what needs no package runs all the same"
    kit.equip(CommandRunner(None, lambda asked: Deny("Denied by the rule @execute.")))
    assert "which may not be installed: Denied by the rule @execute." in (await kit.run("x.py")).text
    kit.write("requirements.txt", "-r ../../other.txt\n")
    assert "points outside the skill's folder" in (await kit.run("x.py")).text


async def test_cancelling_ends_the_installer_and_removes_what_is_half_made(kit: Kit, tmp_path: Path) -> None:
    slow = kit.write("uv", "#!/bin/sh\necho fetching\nsleep 60\n")
    slow.chmod(0o700)
    kit.environments = Environments(tmp_path / "cache" / "skills", lambda: str(slow))
    kit.equip()
    kit.write("requirements.txt", "greeting")
    kit.write("scripts/x.py", "print(1)")
    task = asyncio.create_task(kit.run("x.py"))
    await until_printed(kit.harness, "fetching")
    assert kit.environments.place(wanted(kit)).exists()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not kit.environments.place(wanted(kit)).exists()
    await all_gone(kit.floor.tag)


async def test_two_programs_do_not_install_the_same_at_once(needy: Kit) -> None:
    needed = wanted(needy)
    needy.environments.folder.mkdir(parents=True)
    handle = os.open(needy.environments.folder / f"{needed.key}.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    task = asyncio.create_task(needy.run("x.py"))
    await until_printed(needy.harness, "Waiting: another ba is installing the same packages.")
    place = needy.environments.place(needed)
    (place / "bin").mkdir(parents=True)
    stand_in = place / "bin" / "python"
    stand_in.write_text("#!/bin/sh\necho made by the other\n")
    stand_in.chmod(0o700)
    needy.environments.finish(needed)
    os.close(handle)
    assert (await task).text == "made by the other"
    assert not any("Installing" in event.text for event in needy.harness.events if isinstance(event, ToolProgress))


@pytest.mark.skipif(sys.platform != "linux", reason="needs name spaces")
async def test_in_the_sandbox_the_installer_writes_its_own_environment_only(needy: Kit, tmp_path: Path) -> None:
    sandbox = Sandbox(FileReach((needy.harness.root,), hidden=(tmp_path / "cache",)), "required")
    if sandbox.found.mechanism is None:
        pytest.skip("nothing confines here")
    tried = needy.write("uv", f'#!/bin/sh\necho x >> {needy.harness.root}/made\nexec {find_uv()} "$@"\n')
    tried.chmod(0o700)
    needy.environments = Environments(tmp_path / "cache" / "skills", lambda: str(tried))
    needy.equip(CommandRunner(sandbox))
    assert (await needy.run("x.py")).text == "hello skills"
    assert not (needy.harness.root / "made").exists()
    sandbox.close()
