"""The README and the guide say what is so: names of commands, options, settings, keys, links and pages that they use.

What the commands in them do is tried in test_guide_commands.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import io
import re
import shlex
from contextlib import redirect_stdout
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from ba_tui.cli.commands import app_parts
from ba_tui.cli.main import run
from ba_tui.core.messages import Usage
from ba_tui.core.ports.settings import KINDS
from ba_tui.faces import headless, run_result
from ba_tui.faces.tui.screens import help as shown_help
from ba_tui.faces.tui.screens.sheet import spelled
from ba_tui.features.compat import host, lines
from ba_tui.features.plans.engine import flow_files
from ba_tui.features.teams.cli import application as team
from ba_tui.guide import Guide
from ba_tui.providers import anthropic
from ba_tui.providers.catalog import chosen_catalog
from ba_tui.resources import bundled, places
from ba_tui.settings.sections.tools import HOOK_EVENTS
from tests.house.pages import CHECKOUT, DOCUMENTS, FOLDER, PAGES, Block, blocks, commands, spans
from tests.house.tables import PAGES as TABLES
from tests.house.tables import described, in_page
from tests.house.test_widget_names import our_widgets

MOST_LINES = 200
WIDEST_CODE = 70
"""Columns that a code block of a page has in a terminal of 80."""
GUIDE = Guide()
TOPICS = {page.topic for page in GUIDE.pages}
SETTINGS = {key for key, *_ in described()}
FIELDS = (headless, team, run_result, host, host, lines, anthropic, flow_files)
"""Modules that write or read the fields of JSON that pages name."""
PATHS = ("/v1/models", "/props", "/api/show", "/tmp", "/dev/shm")
EXAMPLES = {"ask_team", "borrow_tool", "run_skill_script", "word_count", "node_modules", "allowed_tools"}
OF_PEOPLE = {"/frontend:form", "/user:review", "/tidy:up", "/up", "/prompts:NAME"}
"""Slash commands that a page makes up for its reader."""


@cache
def help_of(*words: str) -> str:
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said):
        for name, value in {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}.items():
            patch.setenv(name, value)
        assert run([*words, "--help"]) == 0
    return said.getvalue()


def sub_commands(text: str) -> set[str]:
    listed = text.partition("Commands")[2]
    return set(re.findall(r"^[│ ]*([a-z][a-z-]+) ", listed, re.M))


@pytest.mark.parametrize("command", commands())
def test_every_command_exists(command: str) -> None:
    words = shlex.split(command)[1:]
    path: list[str] = []
    while words and words[0] in sub_commands(help_of(*path)):
        path.append(words.pop(0))
    text = help_of(*path)
    options = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert {option for option in options if not re.search(rf"(?<![\w-]){option}(?![\w-])", text)} == set()
    if path == ["guide"]:
        assert set(words) <= TOPICS | {"TOPIC"}


def test_the_documents_name_commands() -> None:
    assert {"ba", "ba demo", "ba -c", "ba doctor"} <= set(commands())


def test_the_readme_is_short() -> None:
    assert len(DOCUMENTS["the README"].splitlines()) <= MOST_LINES


def test_the_contents_list_every_page_once_by_its_title() -> None:
    assert sorted(f"{page.topic}.md" for page in GUIDE.pages) == sorted(PAGES.keys() - {"README.md"})
    for page in GUIDE.pages:
        assert page.text.startswith(f"# {page.title}\n")
        assert page.chapter
        assert page.summary


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    place = CHECKOUT if document == "the README" else FOLDER
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", DOCUMENTS[document]) if "://" not in link]
    assert [link for link in links if not (place / link).exists()] == []
    if document in PAGES:
        # In the app and in the terminal a link names a page, nothing else.
        assert {link for link in links if GUIDE.linked(link) is None} == set()
        assert links, "a page without links leads nowhere"


def test_pages_that_messages_name_exist() -> None:
    texts = (
        path.read_text("utf-8")
        for path in chain((CHECKOUT / "ba_tui").rglob("*.py"), bundled("config").glob("*"))
        if path.is_file()
    )
    named = {topic for text in texts for topic in re.findall(r"\bba guide ([a-z]+)\b", text)}
    assert {"sandbox", "models"} <= named
    assert named - TOPICS - {"lists"} == set()


@pytest.mark.parametrize("topic", TABLES)
def test_the_tables_of_settings_and_flags_are_up_to_date(topic: str) -> None:
    page = PAGES[f"{topic}.md"]
    assert in_page(topic, page) == page, "write it with python -m tests.house.tables"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_setting_exists(document: str) -> None:
    """Spans such as ``commands.domains``, ``notify: bell`` and ``max_file_mb``."""
    found = spans(DOCUMENTS[document])
    groups = {key for key in SETTINGS if any(other.startswith(f"{key}.") for other in SETTINGS)}
    dotted = {span for span in found if "." in span and span.partition(".")[0] in groups}
    assert {span for span in dotted if _of_table(span) not in SETTINGS} == set()
    listed = {part for span in found for part in span.split(", ")}
    assert {part for part in listed if re.fullmatch(r"[a-z]+(_[a-z]+)+", part)} - names() == set()
    valued = [span for span in found if re.match(r"[a-z_]+: \S", span) and not span.startswith(("file:", "not run:"))]
    assert {span: told for span in valued if (told := problems(span))} == {}


def _of_table(key: str) -> str:
    """The key as the table of settings names it: ``providers.bedrock.kind`` stands there as ``providers.NAME.kind``."""
    named = re.sub(r"^providers\.[a-z]+", "providers.NAME", key)
    return re.sub(r"^hooks\.[a-z_]+", "hooks.EVENT", named)


@cache
def names() -> set[str]:
    """What pages may write with an underscore: settings, traps, tools, events, fields of files and JSON, examples."""
    tools: dict[str, Any] = yaml.safe_load((bundled("config") / "tools.yaml").read_text("utf-8"))
    sources = (Path(module.__file__ or "").read_text("utf-8") for module in FIELDS)
    fields = (name for source in sources for name in re.findall(r'["\s]([a-z_]+)["=]', source))
    known = {part for key in SETTINGS for part in key.split(".")}
    used = {each.name for each in dataclasses.fields(Usage)}
    return {*known, *KINDS, *tools["core"], *tools["optional"], *HOOK_EVENTS, *fields, *used, *EXAMPLES}


def problems(text: str) -> str:
    """What ``ba config validate`` says against a config.yaml with this text; empty for nothing."""
    settings = places().settings
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(text, "utf-8")
    said = io.StringIO()
    with redirect_stdout(said):
        code = run(["config", "validate"])
    settings.unlink()
    return said.getvalue() if code or not said.getvalue().startswith("Valid") else ""


@pytest.mark.parametrize("block", blocks("yaml"), ids=lambda block: block.name)
def test_files_in_the_documents_are_valid(block: Block) -> None:
    if block.file == "models.yaml":
        places().config.mkdir(parents=True, exist_ok=True)
        (places().config / "models.yaml").write_text(block.text, "utf-8")
        chosen_catalog(places(), strict=True)
    elif block.file in {"tools.yaml", "skills.yaml"}:
        known: dict[str, Any] = yaml.safe_load((bundled("config") / block.file).read_text("utf-8"))
        assert yaml.safe_load(block.text).keys() <= known.keys()
    elif not block.file:
        assert problems(block.text) == ""


def test_code_is_no_wider_than_a_page_in_a_small_terminal() -> None:
    wide = {
        f"{block.name}: {line}"
        for block in blocks()
        for line in block.text.splitlines()
        if block.language and len(line) > WIDEST_CODE
    }
    assert wide == set()


@pytest.mark.parametrize("block", blocks("python"), ids=lambda block: block.name)
def test_python_in_the_documents_runs(block: Block) -> None:
    exec(compile(block.text, block.name, "exec"), {"__name__": "page"})


def test_modules_that_the_documents_start_exist() -> None:
    text = "\n".join(DOCUMENTS.values())
    named = set(re.findall(r"python -m (tests(?:\.\w+)+)", text))
    assert "tests.bench" in named
    assert {name for name in named if importlib.util.find_spec(name) is None} == set()


def test_every_promise_names_a_test() -> None:
    rows = [line for line in PAGES["promises.md"].splitlines() if line.startswith("| ") and "| promise" not in line]
    assert len(rows) > 20
    assert [row for row in rows if not re.fullmatch(r"\| .+\. \| `tests/\S+\.py::test_\w+` \|", row)] == []
    named = {tuple(span.split("::")) for row in rows for span in spans(row) if span.startswith("tests/")}
    texts = {file: (CHECKOUT / file).read_text("utf-8") for file, _ in named}
    missing = [name for file, name in named if not re.search(rf"^(async )?def {name}\(", texts[file], re.M)]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_slash_command_exists(document: str) -> None:
    known = {f"/{name}" for row in app_parts().rows if row.slash for name in (row.name, *row.aliases)}
    known |= {f"/{folder.name}" for folder in bundled("skills").iterdir()} | OF_PEOPLE
    known |= {f"/{file.stem}" for file in (bundled("config") / "commands").iterdir()}
    found = {span.split()[0] for span in spans(DOCUMENTS[document]) if re.match(r"/[a-z]", span)}
    assert {name for name in found - set(PATHS) if name not in known} == set()


def test_every_key_exists() -> None:
    named = {
        key
        for text in DOCUMENTS.values()
        for key in re.findall(r"\b(?:(?:Ctrl|Alt|Shift)\+[\w]+|F\d+|PgUp|PgDn)", text)
    }
    assert len(named) > 20
    assert {key for key in named if key not in live_keys()} == set()


@cache
def live_keys() -> str:
    """Every key of a command, a widget or a screen, and those that the help lists by hand, as people read them."""
    rows = [row.keys for row in app_parts().rows if row.keys]
    for widget in our_widgets():
        rows += [binding.key for binding in getattr(widget, "BINDINGS", ()) if not isinstance(binding, tuple)]
    listed = (*shown_help.WRITING, *shown_help.BESIDE, *shown_help.ASKED)
    return " ".join([*(spelled(keys) for keys in rows), *(cell for row in listed for cell in row)])


def test_the_newest_changes_fit_120_columns_and_no_setting_speaks_of_a_person() -> None:
    newest = (CHECKOUT / "CHANGELOG.md").read_text("utf-8").split("\n## ")[1]
    assert [line for line in newest.splitlines() if len(line) > 120] == []
    assert "the person" not in (FOLDER / "settings.md").read_text("utf-8")
