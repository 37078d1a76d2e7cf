"""Commands out of Markdown files: where they are found, what they say, what they stand for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.context.commands import CommandFiles, folders, parse_call
from ba_tui.context.own_commands import expand
from ba_tui.core.errors import UsageError
from tests.entering import open_ingress


class Home:
    """Folders of a person and a project."""

    def __init__(self, path: Path) -> None:
        self.home, self.config, self.root = path / "home", path / "config", path / "work"
        self.trusted = True

    def put(self, folder: Path, name: str, text: str | bytes = "Do it.") -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def project(self, name: str, text: str | bytes = "Do it.") -> Path:
        return self.put(self.root / ".claude" / "commands", name, text)

    @property
    def files(self) -> CommandFiles:
        return CommandFiles(folders(self.home, self.config, self.root, lambda: self.trusted), open_ingress())


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return Home(tmp_path)


def trouble(place: Home) -> str:
    (line,) = place.files.lines()
    return line.trouble


def test_the_latest_folder_wins_and_the_others_are_called_by_their_source(place: Home):
    place.put(place.config / "commands", "review.md", "Mine.")
    place.put(place.home / ".claude" / "commands", "review.md", "Mine, for others.")
    place.project("review.md", "Theirs.")
    place.put(place.root / ".ba" / "commands", "deploy.md", "Ours.")
    assert [(line.name, line.source) for line in place.files.lines()] == [("deploy", "project"), ("review", "project")]
    found = {key: place.files.find(key) for key in ("Review", "user:review", "project:review", "project:gone")}
    assert [file and file.body for file in found.values()] == ["Theirs.", "Mine, for others.", "Theirs.", None]
    place.trusted = False
    (line,) = place.files.lines()
    assert (line.source, line.path) == ("user", "~/.claude/commands/review.md")


def test_nested_folders_are_part_of_the_name(place: Home):
    place.project("frontend/component.md")
    place.project("frontend/forms/field.md")
    place.project("backend/field.md")
    files = place.files
    assert [line.name for line in files.lines()] == ["backend:field", "frontend:component", "frontend:forms:field"]
    assert files.find("component") == files.find("frontend:component") is not None
    assert files.find("field") is None
    assert files.nearest("frontend:componet") == "Did you mean /frontend:component?"
    assert files.nearest("xyz") == ""


def test_front_matter_as_other_programs_write_it(place: Home):
    place.project(
        "pr.md",
        "\ufeff---\r\nargument-hint: [number] [priority]\r\ndescription: Look: at a pull request\r\n"
        "allowed-tools: Bash(git diff:*), Bash(gh pr view:*), Read\r\nmodel: 'some/model'\r\n# a remark\r\n"
        "hooks:\r\n  Stop:\r\n    - command: x\r\ndisable-model-invocation: true\r\n---\r\n\r\nReview $1.\r\n",
    )
    place.project(
        "list.md", '---\nallowed-tools:\n  - Read\n  - "Bash(ls:*)"\ndescription: >\n  two\n  lines\n---\nGo.'
    )
    place.project("plain.md", "# Fix the bug\n\nAnd test it.")
    one, two, three = (place.files.find(name) for name in ("pr", "list", "plain"))
    assert one
    assert (one.description, one.hint, one.model) == ("Look: at a pull request", "[number] [priority]", "some/model")
    assert one.tools == ("Bash(git diff:*)", "Bash(gh pr view:*)", "Read")
    assert one.body == "Review $1."
    assert two
    assert (two.tools, two.description) == (("Read", "Bash(ls:*)"), "two lines")
    assert three
    assert (three.description, three.tools, three.model) == ("Fix the bug", (), "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("---\ndescription: x\nGo.", "c.md:1: the front matter is not closed"),
        ("---\ndescription: x\nGo.\n---\n", "c.md:3: 'Go.' is not a field of the form name: value"),
        ("---\ndescription: x\n", "c.md:1: the front matter is not closed"),
        ("---\ndescription: x\n---\n\n", "c.md: there is no prompt in it"),
        ("", "c.md: there is no prompt in it"),
        (b"one\ntwo \xff", "c.md:2: it is not UTF-8 text"),
        ("x" * 200_001, "c.md: it is larger than 200 KB"),
    ],
)
def test_broken_files_are_listed_with_file_and_line(place: Home, text: str | bytes, words: str):
    place.project("c.md", text)
    assert trouble(place).startswith(f".claude/commands/{words}")


def test_names_that_cannot_be_typed_links_to_nowhere_and_rings(place: Home):
    place.project("two words.md")
    assert "can't be typed" in trouble(place)
    folder = place.project("good.md").parent
    (folder / "two words.md").unlink()
    (folder / "again").symlink_to(folder)
    (folder / "gone.md").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "pipe.md")
    (folder / ".hidden.md").write_text("x")
    (folder / "notes.txt").write_text("x")
    lines = {line.name: line.trouble for line in place.files.lines()}
    assert set(lines) == {"good", "gone", "pipe"}
    assert "can't be read: it is not a regular file" in lines["pipe"]
    assert "can't be read" in lines["gone"]


def test_a_changed_file_is_read_again(place: Home):
    path = place.project("a.md", "One.")
    files = place.files
    before = files.find("a")
    path.write_text("Another.")
    after = files.find("a")
    assert before
    assert after
    assert (before.body, after.body) == ("One.", "Another.")
    assert before.digest != after.digest
    path.unlink()
    assert files.find("a") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/review", ("review", "")),
        ("/frontend:component a\nb ", ("frontend:component", "a\nb")),
        ("/etc/hosts is", None),
        ("/", None),
        ("say /review", None),
    ],
)
def test_what_calls_a_command(text: str, said: tuple[str, str] | None):
    assert parse_call(text) == said


async def echo(command: str) -> str:
    return f"<{command}>"


@pytest.mark.parametrize(
    ("body", "arguments", "text"),
    [
        ("Fix $ARGUMENTS now.", "a b", "Fix a b now."),
        ("$1 then $2, not $3.", "'a b' c", "a b then c, not ."),
        ("$1", "it's", "it's"),
        ("It costs $1,000, $12 or \\$1; $1", "x", "It costs $1,000, $12 or $1; x"),
        ("No place.", "12", "No place.\n\nArguments: 12"),
        ("No place.", "", "No place."),
        ("$ARGUMENTS", "$1 $ARGUMENTS", "$1 $ARGUMENTS"),
        ("Now: !`git log $1`", "-3", "Now: <git log -3>"),
        ("Wow!`x` and a `!` and !``", "", "Wow!`x` and a `!` and !``"),
        ("```!\ngit diff\ngit log\n```\nend", "", "<git diff\ngit log>\nend"),
        ("$ARGUMENTS", "!`rm -r x`", "!`rm -r x`"),
    ],
)
async def test_what_a_body_stands_for(body: str, arguments: str, text: str):
    assert (await expand(body, arguments, echo, str)).text == text


async def test_what_commands_print_is_data_and_bounded():
    async def prints(command: str) -> str:
        return "@secret $1 !`again` " * 6_000

    done = await expand("Look at @a.py: !`x` and !`y`", "one", prints, str)
    assert done.ran == ("x", "y")
    assert done.spoken.startswith("Look at @a.py:  and ")
    assert "secret" not in done.spoken
    assert "$1 !`again`" in done.text
    assert "[cut: commands printed too much]" in done.text
    assert len(done.text) < 101_000


async def test_a_refused_command_ends_it():
    async def refuses(command: str) -> str:
        raise UsageError("no")

    with pytest.raises(UsageError):
        await expand("!`x`", "", refuses, str)


@given(st.text("$12!`\\ \n'ARGUMENTSx", max_size=40), st.text("ab $'\"`!", max_size=20))
async def test_nothing_that_is_put_in_runs(body: str, arguments: str):
    ran: list[str] = []

    async def note(command: str) -> str:
        ran.append(command)
        return ""

    done = await expand(body, arguments, note, str)
    assert len(ran) == len(done.ran) == len((await expand(body, "", note, str)).ran)
