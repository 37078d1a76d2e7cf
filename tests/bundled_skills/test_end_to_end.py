"""Each bundled skill through the real program: a scripted model starts it, does what it says, and ends it."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest
from docx import Document
from openpyxl import Workbook

from ba_tui.resources import places
from ba_tui.skills.dependencies import Environments, read_requirements
from tests.bundled_skills.bench import SKILLS, Bench
from tests.bundled_skills.test_pdf import paper
from tests.program import Program


def script(skill: str, name: str, **args: Any) -> tuple[str, dict[str, Any]]:
    return "run_skill_script", {"skill_id": skill, "script_name": name, "stdin": args}


def rule(tool: str, args: dict[str, Any]) -> str:
    about = args.get("command") or args.get("save") or args["skill_id"] + "/" + args["script_name"]
    return f"{tool}({about})"


# What a model that has read the skill does with it; the report puts in the chart that was drawn before.
WORK: dict[str, tuple[str, dict[str, Any]]] = {
    "data-analysis": ("analyse_data", {"operation": "profile", "table": "sales.csv"}),
    "sql": ("query_data", {"sql": "SELECT sum(amount) AS total FROM 'shop.db'"}),
    "charts": ("chart", {"data": "sales.csv", "kind": "bar", "x": "region", "y": "amount", "save": "chart.svg"}),
    "xlsx": script("xlsx", "read.py", path="plan.xlsx", sheet="Plan"),
    "pdf": script("pdf", "text.py", path="paper.pdf"),
    "docx": script("docx", "to_markdown.py", path="letter.docx"),
    "report": script("report", "build.py", path="report.md", output="report.html", figures={"total": "42.50"}),
    "code-review": ("shell", {"command": "git diff HEAD"}),
    "debugging": ("shell", {"command": f"{sys.executable} -B calc.py"}),
    "git": ("shell", {"command": "git log --oneline --all"}),
    "skill-creator": script("skill-creator", "validate.py", path="mine/greet"),
}
SEEN = {
    "data-analysis": "- order BIGINT; probably a key",
    "sql": "42.5",
    "charts": "highest 30 at North, lowest 12.5 at South",
    "xlsx": '["rent", 900]',
    "pdf": '"text": "Quarterly figures"',
    "docx": "# Dear Ann",
    "report": '"pictures": ["chart.svg"]',
    "code-review": "-    return sum(values) / len(values)",
    "debugging": "ZeroDivisionError",
    "git": "Count the mean",
    "skill-creator": '"valid": true',
}


def material(bench: Bench) -> None:
    """A folder as people have one: a repository with a change, data, documents."""
    bench.write("sales.csv", "order,region,amount\n1,North,30\n2,South,12.5\n")
    bench.write("report.md", "# Sales\n\nTotal {{total}} EUR.\n\n![By region](chart.svg)\n")
    bench.write("mine/greet/SKILL.md", "---\nname: greet\ndescription: Greets people. Use it.\n---\nSay hi.\n")
    with sqlite3.connect(bench.folder / "shop.db") as made:
        made.executescript("CREATE TABLE orders(amount REAL); INSERT INTO orders VALUES(30), (12.5)")
    made.close()
    book = Workbook()
    sheet = book.create_sheet("Plan", 0)
    sheet.append(["rent", 900])
    book.save(bench.folder / "plan.xlsx")
    paper(bench.folder / "paper.pdf", ["Quarterly figures"])
    letter = Document()
    letter.add_heading("Dear Ann", 1)
    letter.save(str(bench.folder / "letter.docx"))
    bench.write("calc.py", "def mean(values):\n    return sum(values) / len(values)\n\nprint(mean([]))\n")
    env = {"PATH": os.environ["PATH"], "HOME": str(bench.folder)}
    who = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "calc.py"], [*who, "commit", "-qm", "Count the mean"]):
        subprocess.run(["git", *command], cwd=bench.folder, check=True, env=env)
    bench.write("calc.py", "def mean(values):\n    return sum(values) / (len(values) or 0)\n\nprint(mean([]))\n")


def installed(home: Path) -> None:
    """The packages that three of the skills ask for, as if the user had agreed and they had been fetched."""
    site = sysconfig.get_path("purelib")
    environments = Environments(places({"BA_HOME": str(home)}).cache / "skills")
    for skill in ("xlsx", "pdf", "docx"):
        wanted = read_requirements(skill, SKILLS / skill)
        assert wanted is not None
        environments.begin(wanted)
        place = environments.place(wanted)
        venv.create(place, symlinks=True)
        inner = Path(sysconfig.get_path("purelib", vars={"base": str(place)}))
        (inner / "here.pth").write_text(f"{site}\n")
        environments.finish(wanted)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What every call gave, by its id: ``sql start``, ``sql work``, ``sql end``."""
    place = tmp_path_factory.mktemp("skills")
    (place / "work").mkdir()
    (place / "home").mkdir()
    material(Bench(place / "work"))
    installed(place / "home" / "ba")
    steps: list[dict[str, Any]] = []
    for skill, (tool, args) in WORK.items():
        id = skill.replace("-", "_")
        steps.append({"calls": [{"tool": "activate_skill", "args": {"skill_id": skill}, "id": f"{id}_start"}]})
        steps.append({"calls": [{"tool": tool, "args": args, "id": f"{id}_work"}]})
        steps.append({"calls": [{"tool": "end_skill", "args": {"skill_id": skill}, "id": f"{id}_end"}]})
    script = place / "script.yaml"
    script.write_text(json.dumps({"steps": [*steps, {"say": "Done."}]}))
    program = Program(place / "work", place / "home")
    allow = [word for one in WORK.values() if not one[0].endswith("_data") for word in ("--allow", rule(*one))]
    done = program.run("-p", "-m", f"scripted:{script}", *allow, "go")
    assert done.stdout.endswith("Done.\n"), done.stdout + done.stderr
    finished = [event for event in program.events() if event["type"] == "tool_finished"]
    return {event["call_id"]: event["result"] for event in finished}


@pytest.mark.parametrize("skill", WORK)
def test_it_is_started_does_its_work_and_ends(results: dict[str, Any], skill: str) -> None:
    id = skill.replace("-", "_")
    body = (SKILLS / skill / "SKILL.md").read_text("utf-8").split("---", 2)[2].strip()
    body = body.replace("`references/", f"`@skill:{skill}/references/")
    assert body.splitlines()[0] in results[f"{id}_start"]["text"]
    assert body.splitlines()[-1] in results[f"{id}_start"]["text"]
    assert SEEN[skill] in results[f"{id}_work"]["text"]
    assert not results[f"{id}_work"].get("is_error", False)
    assert not results[f"{id}_end"].get("is_error", False)
