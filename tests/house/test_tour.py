"""The tour tells the truth: its numbers come out of the sample data, its calls fit the tools.

How the tour looks in the app is tested with the app.
"""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from ba_tui.providers.script_files import read_script
from ba_tui.providers.scripted import ModelScript, Planned
from ba_tui.resources import bundled
from ba_tui.tools.definitions import load_definitions

DEMO = bundled("config") / "demo"
AMOUNT = re.compile(r"\d,\d{3}\.\d\d")


@pytest.fixture
def tour() -> ModelScript:
    return read_script(DEMO / "tour.yaml")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DEMO / "data", tmp_path / "sales"))


def calls(tour: ModelScript, tool: str) -> Iterator[Planned]:
    return (call for step in tour.steps for call in step.calls if call.tool == tool)


def correct(tour: ModelScript, data: Path) -> None:
    """Make the tour's edits; each must fit exactly one place."""
    for call in calls(tour, "edit_file"):
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


def test_the_amounts_it_names_are_those_of_the_data(tour: ModelScript, data: Path) -> None:
    before = totals(data)
    assert before == recomputed(data)
    correct(tour, data)
    after = totals(data)
    assert after == recomputed(data)
    said = {amount for step in tour.steps for amount in AMOUNT.findall(step.say)}
    assert said == {before["South"], after["South"], after["North"]}
    assert float(before["South"].replace(",", "")) > float(before["North"].replace(",", ""))
    assert float(after["North"].replace(",", "")) > float(after["South"].replace(",", ""))


def test_the_notes_are_right_once_they_are_corrected(tour: ModelScript, data: Path) -> None:
    correct(tour, data)
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


def test_its_calls_fit_the_tools(tour: ModelScript, data: Path) -> None:
    definitions = load_definitions(bundled("config") / "prompts" / "tools")
    for step in tour.steps:
        for call in step.calls:
            jsonschema.validate(dict(call.args), dict(definitions[call.tool].input_schema))
            if call.tool in {"read_file", "edit_file", "grep"}:
                assert (data / call.args["path"]).is_file()


def test_a_step_for_yes_stands_before_the_one_for_no(tour: ModelScript) -> None:
    """Else the answer to the step for no would be taken for a yes."""
    kinds = [step.when.denied if step.when else None for step in tour.steps]
    places = [index for index, kind in enumerate(kinds) if kind is True]
    assert places
    assert all(kinds[index - 1] is False for index in places)
