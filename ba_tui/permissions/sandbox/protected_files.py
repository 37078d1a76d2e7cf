"""Protected names: files that make other programs run something later, outside of any sandbox, or that instruct models.

The one list for the policy, the file tools and the sandbox. Nothing is opened here.
"""

from __future__ import annotations

from pathlib import Path, PurePath

from ba_tui.core import instruction_names
from ba_tui.permissions.paths import any_of, folded, tail_matches, tails

GIT = ".git"
GIT_SETTINGS = ("config", "config.worktree", "commondir", "gitdir", "hooks", "info/attributes")
"""What decides which programs git runs."""

VENV = "pyvenv.cfg"
"""The file that makes a folder a virtual environment."""

FOLDERS = (
    GIT, ".ba", ".claude", ".agents", ".ci", ".circleci", ".buildkite", ".husky", ".gitea", ".forgejo",
    ".woodpecker", ".semaphore", ".teamcity", "profile.d", ".vscode", ".vs", ".idea", ".zed", ".fleet", ".nvim",
    ".devcontainer", ".cursor", ".windsurf", ".gemini", ".codex", ".opencode", ".vibe", ".roo", ".cline",
    ".kilocode", ".continue", ".direnv", ".mise", ".amazonq", ".amp", ".augment", ".crush", ".factory", ".junie",
    ".kiro", ".qwen", ".trae", ".githooks", ".git-hooks", "githooks", ".idx", ".codesandbox", ".theia", ".nova",
    ".helix", ".bsp", ".run", ".sl", ".tekton", ".azure-pipelines", ".cirrus",
)  # fmt: skip
TAILS = (
    ".github/workflows/**", ".github/actions/**", ".gitlab/ci/**", ".hg/hgrc", ".jj/repo/config.toml",
    ".cargo/config", ".cargo/config.toml", ".yarn/releases/**", ".yarn/plugins/**", ".bundle/config",
    ".venv/**", "venv/**", "node_modules/.bin/**", "site-packages/**",
    ".mvn/**", ".terraform/**", ".poetry/**", ".pdm-plugins/**", ".config/fish/**", ".config/autostart/**",
    ".config/systemd/**", ".config/mise.toml", ".config/mise/**", "mise/config.toml", "tools/bazel", "/etc/profile",
    *instruction_names.TAILS,
)  # fmt: skip
NAMES = (
    ".mcp.json", "opencode.json", "opencode.jsonc", ".crush.json", "crush.json", ".aider.conf.yml",
    ".gitconfig", ".gitmodules", ".hgrc", ".gitlab-ci.yml", ".travis.yml", ".drone.yml",
    ".woodpecker.yml", ".appveyor.yml", "appveyor.yml", "jenkinsfile", "azure-pipelines*.yml",
    "azure-pipelines*.yaml", ".cirrus.yml", ".cirrus.star", ".drone.jsonnet", ".jenkins.yml", ".gitpod.yml", ".replit",
    "bitbucket-pipelines.yml", "cloudbuild.yaml", "cloudbuild.yml", "buildspec.yml", "codemagic.yaml",
    ".pre-commit-config.yaml", ".pre-commit-config.yml", "lefthook*.yml", ".lefthook*.yml", ".overcommit.yml",
    ".huskyrc*", ".envrc", "mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", "mise.*.toml",
    ".rtx.toml", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc",
    ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".xprofile",
    ".xinitrc", ".xsessionrc", ".pam_environment", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs",
    "bunfig.toml", "pip.conf", "uv.toml", "poetry.toml", ".condarc", ".gemrc", "nuget.config", ".bazelrc",
    ".bazeliskrc", ".sbtopts", ".jvmopts", "*.code-workspace", ".devcontainer.json", ".exrc", ".nvimrc",
    ".nvim.lua", ".vimrc", ".lvimrc", ".dir-locals.el", ".gdbinit", ".lldbinit", ".psqlrc", ".sqliterc", ".rprofile",
    ".renviron", ".ghci", ".pdbrc", ".vimspector.json", "*.sublime-project", ".factorypath", ".mavenrc", "flake.nix",
    "shell.nix", "devenv.nix", "devbox.json", ".autoenv", ".autoenv.zsh", ".simple-git-hooks.*",
    ".irbrc", ".pryrc", "pyvenv.cfg", "sitecustomize.py", "usercustomize.py",
)  # fmt: skip

INSTRUCTIONS = {folded(name): name for name in instruction_names.NAMES}
"""The names of instruction and memory files by their folded form. Only their exact spelling is protected where file
names are compared by case: ``docs/agents.md`` is a page like any other."""

_NAME, _TAIL, _PARTS = any_of(NAMES), tails(TAILS), frozenset(FOLDERS)
LAST = tuple(next(part for part in reversed(tail.split("/")) if part != "**") for tail in TAILS)
"""The names that the ends of paths in ``TAILS`` begin to be protected with."""


def is_protected(path: PurePath) -> bool:
    """Whether writing ``path`` changes what runs later (git settings, CI files, shell start-up files and the like) or
    what models are told (AGENTS.md and the like).

    Give the path from the workspace's root when it lies there, so that the folders above do not count.
    """
    parts = [folded(part) for part in path.parts]
    name = parts[-1] if parts else ""
    if path.name in instruction_names.NAMES or _NAME.match(name) or not _PARTS.isdisjoint(parts):
        return True
    return tail_matches(parts, _TAIL)


def respelled(path: Path) -> bool:
    """Whether a file system that ignores case takes ``path`` for an instruction file. Looks at the disk."""
    name = INSTRUCTIONS.get(folded(path.name))
    if name is None or name == path.name:
        return False
    try:
        return path.samefile(path.with_name(name))
    except OSError:
        return False
