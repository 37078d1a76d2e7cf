"""Whether a folder is a valid skill, by the public Agent Skills rules, and what would make it a better one.

In: {"path": "my-skill"}, or paths for several. Out: path, valid, errors, warnings. Errors are what the format forbids.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from pathlib import Path

from frontmatter import Wrong, parsed
from workspace import Args, Refused, inside, option, run, shown

FIELDS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
LINK = re.compile(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)|`((?:scripts|references|assets)/[^`\s]+)`")
WHEN = re.compile(r"\b(when|use|for|if|before|after|whenever)\b", re.IGNORECASE)


def validate(args: Args) -> Args:
    if "paths" in args:
        found = [verdict(str(name)) for name in option(args, "paths", list, [])]
        return {"valid": all(one["valid"] for one in found), "skills": found}
    return verdict(option(args, "path", str, ""))


def verdict(name: str) -> Args:
    if not name:
        raise Refused('"path" is missing: name the folder of a skill')
    folder = inside(name)
    folder = folder.parent if folder.is_file() and folder.name.lower() == "skill.md" else folder
    if not folder.is_dir():
        raise Refused(f"{name}: there is no such folder")
    errors, warnings = judged(folder)
    return {"path": shown(folder), "valid": not errors, "errors": errors, "warnings": warnings}


def judged(folder: Path) -> tuple[list[str], list[str]]:
    file = next((folder / name for name in ("SKILL.md", "skill.md") if (folder / name).is_file()), None)
    if file is None:
        return ["SKILL.md is missing"], []
    try:
        fields, body = parsed(file.read_text("utf-8"))
    except UnicodeDecodeError:
        return ["SKILL.md is not UTF-8"], []
    except Wrong as problem:
        return [str(problem)], []
    errors = [
        f"unknown field {field}: the format knows {', '.join(sorted(FIELDS))}" for field in sorted(set(fields) - FIELDS)
    ]
    errors += named(fields.get("name"), folder.name)
    errors += sized(fields, "description", 1024, required=True)
    errors += sized(fields, "compatibility", 500, required=False)
    return errors, advice(fields, body, folder)


def named(name: object, folder: str) -> list[str]:
    if not isinstance(name, str) or not name.strip():
        return ["name is missing"]
    name = unicodedata.normalize("NFKC", name.strip())
    rules = {
        f"name has {len(name)} characters; 64 are allowed": len(name) > 64,
        "name must be lower case": name != name.lower(),
        "name may not begin or end with a hyphen": name.startswith("-") or name.endswith("-"),
        "name may not hold two hyphens in a row": "--" in name,
        "name may hold letters, digits and hyphens only": not all(sign.isalnum() or sign == "-" for sign in name),
        f"name {name!r} is not that of the folder, {folder!r}": unicodedata.normalize("NFKC", folder) != name,
    }
    return [rule for rule, broken in rules.items() if broken]


def sized(fields: Args, key: str, most: int, required: bool) -> list[str]:
    value = fields.get(key)
    if key not in fields:
        return [f"{key} is missing"] if required else []
    if not isinstance(value, str) or (required and not value.strip()):
        return [f"{key} must be text"]
    return [f"{key} has {len(value)} characters; {most} are allowed"] if len(value) > most else []


def advice(fields: Args, body: str, folder: Path) -> list[str]:
    """What the format allows and readers regret."""
    description, said = str(fields.get("description", "")), list[str]()
    if len(description) > 200:
        said.append(f"description has {len(description)} characters: it rides in every prompt; 100 to 160 do")
    if description and not WHEN.search(description):
        said.append("description does not say when to use the skill")
    if len(body.split()) < 20:
        said.append("the body hardly says anything")
    if len(body) > 20_000:
        said.append(f"the body has about {len(body) // 4} tokens; above 5000 move details to references/")
    for match in LINK.finditer(body):
        name = match[1] or match[2]
        if "<" not in name and not (folder / name).exists():
            said.append(f"{name} is mentioned, but is not there")
    if re.search(r"(^|[\s(`])(/home/|/Users/|[A-Z]:\\)", body):
        said.append("the body names a path of one machine")
    return said


if __name__ == "__main__":
    sys.exit(run(validate, "path paths"))
