"""The tool shell: one bash command in the session's folder, and what the model reads of it.

Starting and ending processes is processes.py; whether a command may run is the permission guard's business.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ba_tui.core.results import Command, Display, StateChange, ToolResult, failure
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.permissions.paths import Workspace
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failed import Failed
from ba_tui.tools.processes import Outcome, ShellCommand, run_supervised
from ba_tui.tools.terminal_text import plain, shortened

LONGEST = 100_000
"""Bytes of a command; beyond, systems refuse to start a program."""
TIMEOUT = 120
MOST = 600
CHARACTERS = 29_000

_KEYS = re.compile(
    r"(?:ANTHROPIC|CLAUDE\w*|OPENAI|AZURE_OPENAI|AZURE_AI|GEMINI|MISTRAL|DEEPSEEK|DASHSCOPE|QWEN|ZHIPU\w*|ZAI|GLM|BIGMODEL"
    r"|MOONSHOT|KIMI|MINIMAX|GROQ|XAI|OPENROUTER|TOGETHER\w*|FIREWORKS|COHERE|CO|PERPLEXITY|PPLX|CEREBRAS|REPLICATE"
    r"|HUGGINGFACE\w*|HF|VOYAGE|AI21|SILICONFLOW|VOLC\w*|ARK|LITELLM|OLLAMA|BA)"
    r"(?:_\w+)?_(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD)(?:_\w+)?"
    r"|(?:GOOGLE|VERTEX|NVIDIA|AZURE)(?:_\w+)?_API_?KEY(?:_\w+)?"
    r"|AWS_BEARER_TOKEN_BEDROCK",
    re.IGNORECASE,
)
_STEERING = re.compile(r"BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PROMPT_COMMAND|PS4|BASH_FUNC_.*")


@dataclass(frozen=True, slots=True)
class Shell:
    """``path`` of bash, None where there is none; ``environment`` of ba; ``secret``: more variables to keep back."""

    path: str | None
    environment: Mapping[str, str]
    secret: Collection[str] = ()

    def inherited(self) -> dict[str, str]:
        """What commands see: no key of a model's vendor, nothing that makes bash run or read something first."""
        kept = {
            name: value
            for name, value in self.environment.items()
            if name not in self.secret and not _KEYS.fullmatch(name) and not _STEERING.fullmatch(name)
        }
        return {**kept, "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}


def shell_tool(definition: Definition, workspace: Workspace, shell: Shell) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        if shell.path is None:
            raise Failed("dependency_error", "bash is not installed, so the shell tool is off.", "Use the file tools.")
        script: str = args["command"]
        _check(script)
        folder = await asyncio.to_thread(start_folder, workspace, call.branch.transcript.cwd)
        seconds = min(float(args.get("timeout", TIMEOUT)), MOST)
        command = ShellCommand(shell.path, script, folder, shell.inherited())
        try:
            outcome = await run_supervised(command, seconds, call.report)
        except OSError as error:
            raise Failed("resource_error", f"The command could not be started: {error.strerror or error}.") from error
        return await asyncio.to_thread(_result, workspace, command, outcome, seconds)

    async def preview(args: Mapping[str, Any]) -> Display | None:
        return Command(args["command"])

    return Tool(
        "shell",
        definition.description,
        definition.input_schema,
        run,
        Effect.EXECUTE,
        timeout=None,
        facts=ToolFacts(category="shell", target="command"),
        preview=preview,
    )


def start_folder(workspace: Workspace, kept: str | None) -> Path:
    """The folder the session's last command ended in, while it exists inside the workspace; else the root."""
    if kept and (folder := Path(kept)).is_dir() and workspace.contains(folder.resolve()):
        return folder
    return workspace.root


def _check(script: str) -> None:
    if not script.strip():
        raise Failed("invalid_parameters", "The command is empty.")
    if "\0" in script:
        raise Failed("invalid_parameters", "The command holds a NUL character.")
    try:
        size = len(script.encode())
    except UnicodeEncodeError as error:
        raise Failed("invalid_parameters", "The command holds text that is no Unicode.") from error
    if size > LONGEST:
        message = f"The command is longer than {LONGEST // 1000} KB."
        raise Failed("invalid_parameters", message, "Write a script with write_file and run that.")


def _result(workspace: Workspace, command: ShellCommand, outcome: Outcome, seconds: float) -> ToolResult:
    output = outcome.capture.text()
    code = outcome.exit_code
    if code is not None and code < 0:
        code = 128 - code
    display = Command(command.script, workspace.shown(command.folder), output, code)
    text = shortened(plain(output).rstrip("\n"), CHARACTERS)
    if outcome.timed_out:
        failed = failure("timeout", f"The command ran longer than {seconds:g} s and was ended.", display=display)
        return replace(failed, text=f"{failed.text}\nOutput so far (partial):\n{text or '(none)'}")
    if code is None:
        failed = failure("execution_error", "The command ended its own supervisor.", display=display)
        return replace(failed, text=f"{failed.text}\nOutput so far (partial):\n{text or '(none)'}")
    notes = [f"exit code {code}"] if code else []
    if outcome.left:
        notes.append(f"{outcome.left} process{'' if outcome.left == 1 else 'es'} left in the background: ended")
    folder, note = _moved(workspace, command.folder, outcome.folder)
    if note:
        notes.append(note)
    text = text or "(no output)"
    if notes:
        text += f"\n[{'; '.join(notes)}]"
    return ToolResult(text, display, summary=f"exit {code}", changes=StateChange(cwd=folder) if folder else None)


def _moved(workspace: Workspace, before: Path, after: str) -> tuple[str | None, str]:
    """Where the next command starts, when that is another folder, and words for it."""
    if not after or after == str(before):
        return None, ""
    folder = Path(after)
    if not folder.is_dir() or folder.resolve() == before.resolve():
        return None, ""
    if workspace.contains(folder.resolve()):
        return after, f"the folder is now {workspace.shown(folder)}"
    return str(workspace.root), f"{after} is outside the workspace; the next command starts in its root"
