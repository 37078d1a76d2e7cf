"""The tool for the scripts of skills, out of the settings and the person's folders.

Where it is listed and which skills there are is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ba_tui.core.tool import Tool
from ba_tui.resources import Places
from ba_tui.settings import Settings
from ba_tui.skills.dependencies import Environments
from ba_tui.skills.scripts import Allowed
from ba_tui.tools.builtin.skill_scripts import ScriptPlace, SkillScripts, run_skill_script_tool
from ba_tui.tools.definitions import Definition


def script_tool(
    definition: Definition, script_place: ScriptPlace, settings: Settings, where: Places, find: Callable[[str], Path]
) -> Tool:
    """``find`` the folder of a skill that can be used; raises BaError when there is none."""
    environments, allowed = Environments(where.cache / "skills"), Allowed(where.state / "skill_scripts.json")
    skills = SkillScripts(find, environments, allowed, settings.commands.skill_timeout)
    return run_skill_script_tool(definition, script_place, skills)
