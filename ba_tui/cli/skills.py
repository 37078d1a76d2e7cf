"""``ba skills``: list, show, check, install, create and remove skills. ``ba_tui.skills`` finds and validates them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from ba_tui.cli.config import Cwd, folder_of, print_facts
from ba_tui.cli.streams import print_line, say
from ba_tui.cli.trust import untrusted
from ba_tui.core.errors import UsageError
from ba_tui.core.text.wording import correction, count, one_line
from ba_tui.permissions.secrets.sharing import ingress_for
from ba_tui.permissions.trust.grants import Trust
from ba_tui.processes.scratch import scratch
from ba_tui.resources import bundled, places, project_root, user_home
from ba_tui.settings import printable
from ba_tui.skills.catalog import Skill, SkillCatalog, SkillChoices, read_choices, skill_roots
from ba_tui.skills.content import body_of, files_of
from ba_tui.skills.install import SkillCandidate, create, fetch, install_skill, name_of, skills_in, staged_copy
from ba_tui.skills.install import remove as remove_folder
from ba_tui.skills.scripts import scripts_in
from ba_tui.skills.validator import check

BRIEF = 80
SHOWN = 8

app = typer.Typer(no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="The skill's name, as `ba skills list` shows it.")]
NewName = Annotated[str, typer.Argument(metavar="NAME", help="Such as sales-report.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
Project = Annotated[bool, typer.Option("--project", help="In the project's .ba/skills instead of your own.")]


@app.command("list")
def list_(json_: Json = False, cwd: Cwd = None) -> int:
    """Print every skill: whether models can see it, its source, its size. For broken skills, print the reason."""
    folder = folder_of(cwd)
    root = project_root(folder)
    found, choices = _catalog(root).look(), _choices(root)
    if json_:
        print_line(json.dumps([_facts(skill, choices) for skill in found], indent=2))
    else:
        widest = max((len(skill.id) for skill in found), default=0)
        for skill in found:
            row = f"{skill.id:<{widest}}  {_state(skill, choices):<8}  {skill.source:<7}  {skill.tokens:>6,}"
            print_line(printable(f"{row}  {one_line(skill.head.trouble or skill.head.description, BRIEF)}"))
        if not found:
            sys.stderr.write("No skills. Create one: ba skills new NAME\n")
    for problem in choices.problems:
        say(str(problem))
    if note := untrusted(root):
        say(note)
    return 0


@app.command()
def show(name: Name, json_: Json = False, cwd: Cwd = None) -> int:
    """Print all there is to know of one skill, its files and its instructions."""
    root = project_root(folder_of(cwd))
    catalog = _catalog(root)
    skill = _known(catalog, name)
    facts = {**_facts(skill, _choices(root)), "files": [file.name for file in files_of(skill)]}
    body = "" if skill.head.trouble else body_of(skill, catalog.ingress)
    if json_:
        print_line(json.dumps({**facts, "instructions": body}, indent=2))
        return 0
    texts = {
        key: ", ".join(cast("list[str]", value)) if isinstance(value, list) else str(value)
        for key, value in facts.items()
    }
    print_facts(texts, body)
    return 0


@app.command()
def validate(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Folders of skills, or their SKILL.md.")],
    json_: Annotated[bool, typer.Option("--json", help="As one JSON object; of several paths, as an array.")] = False,
) -> int:
    """Check skills by the rules of the public format; exit 1 when one breaks them."""
    reports = [check(path) for path in paths]
    told = [
        {"path": str(path), "valid": report.valid, "errors": list(report.errors), "warnings": list(report.warnings)}
        for path, report in zip(paths, reports, strict=True)
    ]
    if json_:
        print_line(json.dumps(told[0] if len(told) == 1 else told, indent=2))
    else:
        for path, report in zip(paths, reports, strict=True):
            print_line(printable(f"{path}: {'valid' if report.valid else 'not valid'}"))
            for error in report.errors:
                print_line(printable(f"  error: {error}"))
            for warning in report.warnings:
                print_line(printable(f"  warning: {warning}"))
    return 0 if all(report.valid for report in reports) else 1


@app.command()
def install(
    source: Annotated[str, typer.Argument(metavar="PATH-OR-GIT-URL", help="A folder, or a git repository.")],
    only: Annotated[
        list[str] | None, typer.Option("--skill", metavar="NAME", help="Of several skills, install this one.")
    ] = None,
    project: Project = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing skill, or install an invalid one.")
    ] = False,
    json_: Json = False,
    cwd: Cwd = None,
) -> int:
    """Copy a skill from a folder or a git repository. It is checked first; nothing of it is run.

    Its scripts run later, each when a model asks for it and you, or your rules, allow it.
    """
    root = project_root(folder_of(cwd))
    target = _skills_folder(root, project=project)
    with scratch("skill") as near:
        chosen = _chosen(fetch(source, near / "from"), source, only or [])
        candidates = [staged_copy(folder, near / "new") for folder in chosen]
        # Install all or none, so that a failure leaves no half of a repository.
        for candidate in candidates:
            _tell(candidate, facts=not json_)
        for candidate in candidates:
            _check(candidate, target, force=force)
        told: list[dict[str, Any]] = []
        for candidate in candidates:
            place = install_skill(candidate, target)
            told.append(
                {"id": candidate.id, "path": str(place), "scripts": [*candidate.scripts], "needs": [*candidate.needs]}
            )
            if not json_:
                print_line(f"Installed: {place}")
    if json_:
        print_line(json.dumps(told, indent=2))
    _tell_trust(root, project=project)
    return 0


@app.command()
def new(name: NewName, project: Project = False, json_: Json = False, cwd: Cwd = None) -> int:
    """Begin a skill: a valid SKILL.md, to be filled in."""
    root = project_root(folder_of(cwd))
    file = create(name, _skills_folder(root, project=project))
    hint = f"{file}\nFill it in, then check it: ba skills validate {file.parent}"
    print_line(json.dumps({"id": name, "path": str(file.parent)}, indent=2) if json_ else hint)
    _tell_trust(root, project=project)
    return 0


@app.command()
def remove(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json_: Json = False,
    cwd: Cwd = None,
) -> int:
    """Remove a skill with all its files."""
    root = project_root(folder_of(cwd))
    skill = _known(_catalog(root), name)
    if skill.source == "bundled":
        hint = f"Switch it off: optional: {{{skill.id}: {{enabled: false}}}} in {places().config / 'skills.yaml'}"
        raise UsageError(f"{skill.id} ships with ba and can't be removed.", hint)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("There is no terminal to ask in.", f"ba skills remove --yes {name}")
        if not typer.confirm(f"Remove {skill.folder} with everything in it?", err=json_):
            return 1
    remove_folder(skill.folder)
    print_line(
        json.dumps({"id": skill.id, "path": str(skill.folder)}, indent=2) if json_ else f"Removed: {skill.folder}"
    )
    _tell_trust(root, project=skill.source == "project")
    return 0


def _catalog(root: Path) -> SkillCatalog:
    where = places()
    roots = skill_roots(bundled("skills"), user_home(), where.config, root, lambda: Trust(where).trusted(root))
    return SkillCatalog(roots, ingress_for(where, root))


def _choices(root: Path) -> SkillChoices:
    where = places()
    theirs = [root / ".ba" / "skills.yaml"] if Trust(where).trusted(root) else []
    return read_choices(bundled("config") / "skills.yaml", [where.config / "skills.yaml", *theirs])


def _known(catalog: SkillCatalog, name: str) -> Skill:
    if skill := catalog.get(name):
        return skill
    raise UsageError(
        f"There is no skill {name!r}.", correction(name, [skill.id for skill in catalog.all()], "See ba skills list.")
    )


def _facts(skill: Skill, choices: SkillChoices) -> dict[str, Any]:
    return {
        "id": skill.id,
        "state": _state(skill, choices),
        "source": skill.source,
        "path": str(skill.folder),
        "description": skill.head.description,
        "tokens": skill.tokens,
        "trouble": skill.head.trouble,
        "warnings": list(skill.warnings),
        "tools": list(skill.head.tools),
        "scripts": list(scripts_in(skill.folder)),
    }


def _state(skill: Skill, choices: SkillChoices) -> str:
    if skill.head.trouble:
        return "broken"
    if skill.shadowed:
        return "shadowed"
    told = choices.enabled and choices.of(skill.id).enabled and not skill.head.hidden
    return "on" if told else "off"


def _skills_folder(root: Path, *, project: bool) -> Path:
    return root / ".ba" / "skills" if project else places().config / "skills"


def _chosen(folder: Path, source: str, only: Sequence[str]) -> Sequence[Path]:
    """Return the selected skills of ``folder``."""
    found = {name_of(each): each for each in skills_in(folder)}
    if not found:
        raise UsageError(f"There is no skill in {source}: no SKILL.md.", "Name a folder that contains a SKILL.md.")
    names = ", ".join(found)
    if missing := [name for name in only if name not in found]:
        raise UsageError(f"{source} has no skill {missing[0]!r}.", f"It has: {names}.")
    if not only and len(found) > 1:
        raise UsageError(f"{source} has {len(found)} skills: {names}.", "Choose with --skill NAME, once for each.")
    return [found[name] for name in dict.fromkeys(only)] if only else list(found.values())


def _tell(candidate: SkillCandidate, *, facts: bool) -> None:
    files = count(candidate.files, "file")
    if facts:
        print_line(printable(f"{candidate.id}: {files}; scripts: {_some(candidate.scripts) or 'none'}"))
    if facts and candidate.needs:
        print_line(printable(f"  Its scripts need {_some(candidate.needs)}; ba asks before it installs them."))
    for warning in candidate.report.warnings:
        say(f"{candidate.id}: {warning}")


def _check(candidate: SkillCandidate, target: Path, *, force: bool) -> None:
    """Raise UsageError when the skill may not be installed."""
    errors = [candidate.trouble] if candidate.trouble else list(candidate.report.errors)
    if errors and (candidate.trouble or not force):
        for error in errors[1:]:
            say(f"{candidate.id}: {error}")
        cure = "Correct its SKILL.md." if candidate.trouble else "Correct it, or install it anyway: --force."
        raise UsageError(f"{candidate.id} is not valid: {errors[0]}.", cure)
    if os.path.lexists(place := target / candidate.id) and not force:
        raise UsageError(f"{place} already exists.", "Replace it: --force.")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _tell_trust(root: Path, *, project: bool) -> None:
    if project and (note := untrusted(root)):
        say(note)
