"""The tour tells the truth: its numbers come out of the sample data, its calls fit the tools, its ways lead on.

How it plays is tested in test_tour_played.
"""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import jsonschema
import pytest

from ba_tui.cli.demo import read_chapters
from ba_tui.core.messages import user
from ba_tui.providers.scripted import ModelScript, ScriptedCall, ScriptTalk, When, read_script, resolve_choices
from ba_tui.resources import bundled
from ba_tui.tools.definitions import load_definitions

DEMO = bundled("config") / "demo"
CHAPTERS = [chapter.name for chapter in read_chapters()]
OTHERS = {"demo", "summary"}
AMOUNT = re.compile(r"\d,\d{3}\.\d\d")
NOTHING = ScriptTalk([user("Go")])


def chapter(name: str) -> ModelScript:
    return read_script(DEMO / "scripts" / f"{name}.yaml")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DEMO / "data", tmp_path / "sales"))


def calls(script: ModelScript) -> Iterator[ScriptedCall]:
    return (call for step in script.steps for call in step.calls)


def correct(data: Path) -> None:
    """Make the edits of the first chapter; each must fit exactly one place."""
    for call in calls(chapter("first")):
        if call.tool == "edit_file":
            file = data / call.args["path"]
            text = file.read_text("utf-8")
            assert text.count(call.args["old_string"]) == 1
            file.write_text(text.replace(call.args["old_string"], call.args["new_string"]), "utf-8")


def totals(data: Path) -> dict[str, str]:
    """What totals.sh says, in the tour's way of writing amounts."""
    done = subprocess.run(["sh", "totals.sh"], cwd=data, capture_output=True, text=True, check=True)
    rows = (line.split() for line in done.stdout.splitlines() if not line.startswith("By "))
    return {name: f"{float(amount):,.2f}" for name, amount in rows}


def recomputed(data: Path) -> dict[str, str]:
    """The same without the shell."""
    found: defaultdict[str, float] = defaultdict(float)
    with (data / "sales.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["region"] or "(none)"] += float(row["amount"])
            found[row["date"][:7]] += float(row["amount"])
    return {name: f"{amount:,.2f}" for name, amount in found.items()}


def test_the_amounts_it_names_are_those_of_the_data(data: Path) -> None:
    before = totals(data)
    assert before == recomputed(data)
    correct(data)
    after = totals(data)
    assert after == recomputed(data)
    known = {"first": {before["South"], after["South"], after["North"]}, "figures": {after["South"], after["North"]}}
    known["analysis"] = known["figures"] | {after["West"]}
    for name, amounts in known.items():
        assert {amount for step in chapter(name).steps for amount in AMOUNT.findall(step.say)} == amounts
    assert float(before["South"].replace(",", "")) > float(before["North"].replace(",", ""))
    assert float(after["North"].replace(",", "")) > float(after["South"].replace(",", ""))


def test_the_notes_are_right_once_they_are_corrected(data: Path) -> None:
    correct(data)
    orders = len((data / "sales.csv").read_text("utf-8").splitlines()) - 1
    notes = (data / "notes.md").read_text("utf-8")
    assert f"North, {totals(data)['North']} euros" in notes
    assert f"Orders: {orders}." in notes


def test_the_flaws_it_names_are_in_the_data(data: Path) -> None:
    with (data / "sales.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    orders = [row["order"] for row in rows]
    assert [order for order in set(orders) if orders.count(order) > 1] == ["1029"]
    wrong = [
        row["order"] for row in rows if abs(int(row["units"]) * float(row["price"]) - float(row["amount"])) > 0.001
    ]
    assert wrong == ["1052"]


def test_every_chapter_has_a_script() -> None:
    assert {path.stem for path in (DEMO / "scripts").iterdir()} == {*CHAPTERS, *OTHERS}


@pytest.mark.parametrize("name", CHAPTERS)
def test_its_calls_fit_the_tools(name: str, data: Path) -> None:
    definitions = load_definitions(bundled("config") / "prompts" / "tools")
    flows = {path.stem for path in (DEMO / "home" / "workflows").iterdir()}
    for call in calls(chapter(name)):
        if call.tool in flows:
            continue
        args: Mapping[str, object] = resolve_choices(dict(call.args), NOTHING)
        jsonschema.validate(args, dict(definitions[call.tool].input_schema))
        if call.tool in {"read_file", "edit_file", "grep"} and args["path"] != "report.md":
            assert (data / str(args["path"])).is_file()


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_answer_leads_on(name: str) -> None:
    script = chapter(name)
    ids = {call.id for call in calls(script)}
    *steps, end = script.steps
    assert "**Next:**" in end.say or "**Next:**" in script.steps[-2].say
    for step in steps:
        # Members of a team and its planner answer ba, not the user.
        told = step.when.said if step.when else ""
        member = told.startswith(("You are the ", "The request, in")) or "Facts:" in step.say
        leads = step.calls or step.next or "**Next:**" in step.say
        assert leads or member, "a turn that ends says what comes next"
    for step in script.steps:
        assert step.behind or not step.before or step.when is None, "one alternative fits always"
        when: When | None = step.when
        while when:
            assert ids.issuperset(when.done)
            when = when.unless
    assert script.last
    assert "Ctrl+D" in script.last.say
