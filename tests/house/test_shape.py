"""The shape of the house: how long a file may be, what it may be called, what its docstring says, who imports whom.

What a module does when it is imported or run is not judged here (see test_imports).
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import grimp
import pytest

from tests.house.figures import figures, modules_below

CHECKOUT = Path(__file__).resolve().parents[2]
LONGEST = 600
MOST_MODULES = 30
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "managers"}
MODULES = sorted([*(CHECKOUT / "ba_tui").rglob("*.py"), *(CHECKOUT / "tests").rglob("*.py")])
PACKAGES = [module for module in MODULES if module.name == "__init__.py" and "ba_tui" in module.parts]


def name_of(path: Path) -> str:
    return path.relative_to(CHECKOUT).as_posix()


def tracked_files() -> list[Path]:
    """Every file that git knows or would add; all of them where there is no git."""
    asked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode:
        pytest.skip("not a git checkout: nothing says which files are the project's")
    return [CHECKOUT / name for name in asked.stdout.split("\0") if name and (CHECKOUT / name).is_file()]


def test_no_file_is_longer_than_a_person_reads() -> None:
    lengths = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_the_package_keeps_its_shape() -> None:
    """Bounds that may only become tighter. ``python -m tests.house.figures`` prints the figures."""
    shape = figures(modules_below(CHECKOUT / "ba_tui"))
    at_most = {"small": 28, "one importer": 61, "twice": 5, "participles": 11, "bundles": 10, "late": 179}
    at_most |= {"circles": 0, "into": 0, "between": 2}
    assert {name: shape[name] for name, bound in at_most.items() if shape[name] > bound} == {}
    assert shape["median lines"] >= 190


def test_no_folder_holds_more_modules_than_one_list_shows() -> None:
    counted = Counter(name_of(path.parent) for path in MODULES)
    assert {folder: count for folder, count in counted.items() if count > MOST_MODULES} == {}


def test_no_module_is_a_drawer() -> None:
    assert [name_of(path) for path in MODULES if {path.stem, path.parent.name} & FORBIDDEN_NAMES] == []


@pytest.mark.parametrize("package", PACKAGES, ids=name_of)
def test_each_package_says_who_it_may_import(package: Path) -> None:
    words = (ast.get_docstring(ast.parse(package.read_text("utf-8"))) or "").lower()
    assert words, f"{name_of(package)} has no docstring"
    if package.parent.name != "ba_tui":
        assert "import" in words, f"{name_of(package)} does not say who it may import"


def test_assembly_finishes_no_object_after_it_was_made() -> None:
    """State is handed over when an object is made; what would be set later belongs to another lifetime."""
    found: list[str] = []
    for path in sorted((CHECKOUT / "ba_tui" / "assembly").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            outside = [each for target in targets for each in _targets(target) if not _own(each)]
            found += [f"{path.name}:{each.lineno}" for each in outside]
            found += [f"{path.name}:{node.lineno}"] if isinstance(node, ast.Name) and node.id == "setattr" else []
    assert found == []


def _targets(target: ast.AST | None) -> list[ast.Attribute]:
    """The attributes among what is assigned to."""
    return (
        [each for each in ast.walk(target) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)]
        if (target is not None)
        else []
    )


def _own(attribute: ast.Attribute) -> bool:
    return isinstance(attribute.value, ast.Name) and attribute.value.id == "self"


def test_each_module_says_what_lives_in_it() -> None:
    modules = [path for path in MODULES if "ba_tui" in path.parts and path.name != "__init__.py"]
    # What comes before the first import is read alone: that is quick.
    heads = {path: path.read_text("utf-8").partition("\nfrom __future__ ")[0] for path in modules}
    assert [name_of(path) for path, head in heads.items() if not ast.get_docstring(ast.parse(head))] == []


def test_imports_keep_to_the_floors() -> None:
    run = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_no_modules_import_each_other_in_a_circle() -> None:
    """In a circle no module can be read, tested or moved alone. An import for types or inside a function counts too."""
    graph = grimp.build_graph("ba_tui", cache_dir=None)
    left = {name: graph.find_modules_directly_imported_by(name) & graph.modules for name in graph.modules}
    # A module whose imports are all gone from the graph is in no circle: what can't be taken away is, or is above one.
    while free := {name for name, imported in left.items() if not imported & left.keys()}:
        left = {name: imported for name, imported in left.items() if name not in free}
    while top := left.keys() - {name for imported in left.values() for name in imported}:
        left = {name: imported for name, imported in left.items() if name not in top}
    assert sorted(left) == []


def test_no_worker_is_given_a_coroutine_that_may_never_start() -> None:
    """An app that ends before a worker's first step drops the coroutine it was given: Python warns of that over the
    person's terminal. A worker gets the function (or a ``partial``) and makes the coroutine itself.
    """
    made = [
        f"{name_of(path)}:{node.lineno}"
        for path in MODULES
        if "run_worker(" in (text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "run_worker"
        for work in node.args[:1]
        if isinstance(work, ast.Call) and ast.unparse(work.func) != "partial"
    ]
    assert made == []


STARTING = {"Popen", "run", "call", "check_call", "check_output", "create_subprocess_exec", "create_subprocess_shell"}
IN_THE_FOREGROUND = {
    "ba_tui/features/data/analysis/kernel/kernel_process.py": "in the sandbox, below the supervisor of its worker",
    "ba_tui/cli/config.py": "the user's editor has the terminal",
    "ba_tui/faces/tui/acts/editor.py": "the user's editor has the terminal",
}


def test_only_one_room_starts_programs() -> None:
    """There each is ended with all it started, and what it prints is bounded."""
    found = {
        name_of(path)
        for path in MODULES
        if "ba_tui" in path.parts
        and path.parent.name != "processes"
        and "subprocess" in (text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in STARTING
        if ast.unparse(node.func.value) in {"subprocess", "asyncio", "asyncio.subprocess"}
    }
    assert found == set(IN_THE_FOREGROUND)


def test_no_file_knows_this_machine() -> None:
    """A path of the checkout or of somebody's home works on one machine only."""
    places = [str(place).encode() for place in (CHECKOUT, Path.home()) if len(place.parts) > 2]
    knowing = [
        f"{name_of(path)}: {place.decode()}"
        for path in tracked_files()
        for place in places
        if place in path.read_bytes()
    ]
    assert knowing == []


@pytest.mark.parametrize("name", ["run", "check", "environment"])
def test_each_script_is_good_bash(name: str) -> None:
    script = CHECKOUT / ".ci" / name
    read = subprocess.run(["bash", "-n", script], capture_output=True, text=True, check=False)
    assert (read.returncode, read.stderr) == (0, "")
    assert "\nset -euo pipefail\n" in script.read_text("utf-8")


def test_values_and_patterns_are_made_in_the_ways_that_are_quick_to_import() -> None:
    """``core.values.frozen`` for values, ``core.patterns.regex`` at the head of a module: each start pays for them."""
    slow: list[str] = []
    for path in MODULES:
        text = path.read_text("utf-8")
        if "ba_tui" not in path.parts or not ("re.compile(" in text or "(frozen=True" in text):
            continue
        for node in ast.parse(text).body:
            made = [node.value] if isinstance(node, ast.Assign | ast.AnnAssign) and node.value else []
            made += node.decorator_list if isinstance(node, ast.ClassDef) else []
            if any("re.compile(" in ast.unparse(each) or "(frozen=True" in ast.unparse(each) for each in made):
                slow.append(f"{name_of(path)}:{node.lineno}")
    assert slow == []
