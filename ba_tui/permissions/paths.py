"""Resolves paths that a model names, tells whether they are in the workspace, and which paths need more care.

No file is opened; code that opens a path checks it again afterwards. ``policy`` gives the verdicts.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from fnmatch import translate
from functools import lru_cache
from pathlib import Path, PurePath
from urllib.parse import unquote, urlsplit

from ba_tui.core.errors import BaError
from ba_tui.core.messages import clean_text
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import clipped
from ba_tui.core.values import frozen
from ba_tui.ingress import from_home

SECRET_NAMES = (
    # Variables and settings of programs.
    ".env*", "*.env", "env.backup", "env.bak", "env.old", "env.local", "env.prod", "env.production", ".renviron",
    "secrets.toml", "secrets.yaml", "secrets.yml", "secrets.json", "secrets.ini", "secrets.env", "secrets.properties",
    "secret.yaml", "secret.yml", "local.settings.json", "wp-config.php", "localsettings.php", "secret_token.rb",
    "*.tfvars", "*.tfvars.json", "*.tfstate", "*.tfstate.backup", "terraform.rc", ".terraformrc",
    # Stored logins.
    ".netrc", "_netrc", ".pgpass", ".my.cnf", ".mylogin.cnf", ".git-credentials", ".pypirc", ".vault-token",
    ".vault_pass", ".vault_pass.txt", "vault_pass.txt", ".htpasswd", ".dockercfg", "kubeconfig", "*.kubeconfig",
    ".s3cfg", ".boto", ".passwd-s3fs", ".databrickscfg", ".esmtprc", ".msmtprc", "*.ovpn", "sftp-config.json",
    ".ftpconfig", ".remote-sync.json", "filezilla.xml", "sitemanager.xml", "recentservers.xml", "robomongo.json",
    "credentials-config.json", ".dbeaver-data-sources.xml", "credentials.json", "credentials.xml", "credentials.yml",
    "credentials.yaml", "credentials.toml", "credentials.ini", "credentials.csv", "credentials.tfrc.json",
    "application_default_credentials.json", "client_secret*.json", "service-account*.json", "service_account*.json",
    "serviceaccount*.json", "gha-creds-*.json", "*accesskeys.csv", "rootkey.csv", "accesstokens.json",
    # Private keys, and stores of keys.
    "id_rsa", "id_rsa.*", "id_dsa", "id_dsa.*", "id_ecdsa", "id_ecdsa.*", "id_ed25519", "id_ed25519.*", "id_ecdsa_sk",
    "id_ed25519_sk", "master.key", "*.ppk", "*.p12", "*.pfx", "*.pkcs12", "*.jks", "*.keystore", "*.bks", "*.kdbx",
    "*.kdb", "*.agilekeychain", "*.keychain", "*.keychain-db", "secring.*", "otr.private_key", "shadow-", "gshadow",
    # What was typed, passwords among it.
    ".bash_history", ".zsh_history", ".sh_history", ".mysql_history", ".psql_history", ".sqlite_history",
    ".rediscli_history", ".mongosh_history", ".python_history", ".node_repl_history", ".irb_history", ".rhistory",
)  # fmt: skip
"""Names of files in which every value is secret, in lower case. Sources: gitleaks, detect-secrets, GitHub's gitignore
templates. Files that only sometimes contain secrets are found by their content instead."""
SECRET_IN_HOME = (".npmrc", ".yarnrc.yml")
SECRET_FOLDERS = (".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store", "keychains", "keyrings")
SECRET_TAILS = (
    "/etc/shadow", ".docker/config.json", ".config/gh/hosts.yml", ".config/gcloud/**", ".cargo/credentials",
    ".cargo/credentials.toml", ".gem/credentials", ".config/git/credentials", ".config/rclone/rclone.conf",
    "/proc/*/environ", "/proc/*/task/*/environ",
)  # fmt: skip
TEMPORARY = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - commands get a private stand-in
OPEN_NAMES = (
    "id_rsa.pub", "id_dsa.pub", "id_ecdsa.pub", "id_ed25519.pub", ".env*.example", ".env*.sample", ".env*.template",
    ".env*.dist", ".env*.tpl", ".env*.schema", ".env-example", ".env-sample", ".env-template", ".env.defaults",
    "example.env", "sample.env", "template.env", "example.tfvars", "sample.tfvars",
)  # fmt: skip
"""Files that document the expected values: templates, and public halves of keys."""

_OWN_FOLDER = regex(r"/+(?:\./+)*proc/+(?:\./+)*(?:thread-)?self/+(?:\./+)*cwd(?:/+|$)")
"""The working directory as a command itself sees it; in ba's process this path means another folder."""
_DESCRIPTOR = regex(r"/(?:dev/(?:fd/|std(?:in|out|err)$)|proc/(?:thread-)?self/fd/)")
_UNSEEN = regex("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Characters that some file systems ignore in names."""
_HELD: ContextVar[dict[Path, Path] | None] = ContextVar("held", default=None)


def any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    """Compile wildcard patterns into one: a command may name hundreds of paths."""
    return regex("|".join(translate(pattern) for pattern in patterns))


def tails(patterns: Iterable[str]) -> re.Pattern[str]:
    """Compile patterns for the ends of paths into one, for ``tail_matches``."""
    return any_of(pattern if pattern[0] == "/" else f"*/{pattern}" for pattern in patterns)


_SECRET_PLAIN = frozenset(name for name in SECRET_NAMES if "*" not in name)
_SECRET_NAME = any_of(name for name in SECRET_NAMES if "*" in name)
_OPEN_NAME = any_of(OPEN_NAMES)
_SECRET_TAIL = tails(SECRET_TAILS)
_SECRET_PARTS = frozenset(SECRET_FOLDERS)

UNREADABLE = "\N{REPLACEMENT CHARACTER}"
"""Replaces bytes of a name that are not UTF-8."""
LONGEST = 4_096
LONGEST_NAME = 255


@contextmanager
def held_paths() -> Generator[None]:
    """Keep the first resolution of each path within the block, so that the judged path is the opened path.

    A link that is created in between is not followed.
    """
    token = _HELD.set({})
    try:
        yield
    finally:
        _HELD.reset(token)


class PathRefused(BaError):
    """A text that is no usable path. ``malformed`` is False for a valid path that does not suit the call."""

    kind = "invalid_parameters"

    def __init__(self, message: str, hint: str = "", *, malformed: bool = True) -> None:
        super().__init__(message, hint)
        self.malformed = malformed


@frozen
class ReadOnlyFolder:
    """A folder outside the workspace, readable as ``name/…``. The workspace's own files take precedence."""

    name: str
    folder: Path


@frozen
class Workspace:
    """The folders to work in.

    ``root`` and ``extra`` are resolved once; relative paths start from ``root``. ``lent``: read-only folders, each
    under its own name. ``started``: files in the workspace that hooks start outside the sandbox, or that instruction
    files import; they are protected whatever their names.
    """

    root: Path
    extra: tuple[Path, ...] = ()
    lent: tuple[ReadOnlyFolder, ...] = ()
    started: frozenset[Path] = frozenset()
    heads: frozenset[str] = field(init=False, default=frozenset())
    """The first parts of the names of lent folders."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", Path(os.path.realpath(self.root)))
        object.__setattr__(self, "extra", tuple(Path(os.path.realpath(folder)) for folder in self.extra))
        lent = tuple(ReadOnlyFolder(one.name, Path(os.path.realpath(one.folder))) for one in self.lent)
        object.__setattr__(self, "lent", lent)
        object.__setattr__(self, "heads", frozenset(PurePath(one.name).parts[0] for one in lent))

    def resolve(self, text: str, cwd: Path | None = None) -> Path:
        """Return the absolute path of ``text``, with ``~``, ``..``, ``file://`` and links resolved.

        Raises:
            PathRefused: ``text`` is no usable path.
        """
        return self._resolved(text, self._joined(text, cwd), cwd)

    def _resolved(self, text: str, joined: Path, cwd: Path | None) -> Path:
        held = _HELD.get()
        if held is not None and joined in held:
            return held[joined]
        # ba's file descriptors differ from those of a command.
        own = cwd is not None and bool(_DESCRIPTOR.match(str(joined)))
        try:
            resolved = Path(os.path.normpath(joined) if own else os.path.realpath(joined))
        except OSError as error:
            # Some kernel links can't be read.
            raise PathRefused(f"{_brief(text)} can't be resolved: {error.strerror}.", malformed=False) from error
        if held is not None:
            held[joined] = resolved
        if not own and os.path.islink(resolved):  # noqa: PTH114 - must not raise
            raise PathRefused(f"{_brief(text)} is a symbolic link to itself.", "Name the file itself.")
        return resolved

    def named(self, text: str, cwd: Path | None = None) -> Path:
        """Return the path as ``resolve`` does, but without following links."""
        return Path(os.path.normpath(self._joined(text, cwd)))

    def both(self, text: str, cwd: Path | None = None) -> tuple[Path, Path]:
        """Return the results of ``named`` and ``resolve``."""
        joined = self._joined(text, cwd)
        name, resolved = os.path.normpath(joined), self._resolved(text, joined, cwd)
        return resolved if name == str(resolved) else Path(name), resolved

    def _joined(self, text: str, cwd: Path | None) -> Path:
        # Keep ``..``: behind a link it means the parent of the link's target.
        if not text.strip():
            raise PathRefused("The path is empty.", "Name a file or folder; '.' is the current one.")
        plainly = text.isascii() and len(text) <= LONGEST_NAME
        if "\0" in text or not (plainly or _has_bytes(text)):
            raise PathRefused(f"{_brief(text)} holds a character that paths can't have.", "Check the path.")
        if not plainly and (
            len(text) > LONGEST or any(len(os.fsencode(part)) > LONGEST_NAME for part in text.split("/"))
        ):
            raise PathRefused(f"{_brief(text)} is too long for a path.", "Check the path.")
        plain = _from_address(text)
        try:
            path = Path(plain).expanduser() if "~" in plain else Path(plain)
        except RuntimeError as error:
            raise PathRefused(
                f"{_brief(text)} names the home folder of an unknown user.", "Write the whole path."
            ) from error
        if path.is_absolute():
            here = _OWN_FOLDER.match(str(path)) if cwd else None
            path = Path(cwd, str(path)[here.end() :]) if cwd and here else path
        elif path.parts and path.parts[0] in self.heads and (lent := self._lent(path)):
            path = lent
        else:
            path = (cwd or self.root) / path
        return path if plainly or UNREADABLE not in text else _as_named(path)

    def _lent(self, path: Path) -> Path | None:
        for one in self.lent:
            if path.is_relative_to(one.name) and not os.path.lexists(self.root / path):
                there = one.folder / path.relative_to(one.name)
                # A new file of that name belongs to the workspace.
                return there if os.path.lexists(there) else None
        return None

    def lends(self, path: Path) -> bool:
        """Return whether a resolved ``path`` is in a read-only folder."""
        return any(path.is_relative_to(one.folder) for one in self.lent)

    def contains(self, path: Path) -> bool:
        """Return whether a resolved ``path`` is in the workspace."""
        return bool(self.places(path))

    def places(self, path: Path) -> tuple[str, ...]:
        """Return ``path`` relative to each folder of the workspace that contains it, with ``/``."""
        found = (self._relative(path, folder) for folder in (self.root, *self.extra))
        return tuple(place for place in found if place is not None)

    def relative(self, path: Path) -> str | None:
        """Return ``path`` relative to the root, with ``/``; None if it is elsewhere."""
        return self._relative(path, self.root)

    def shown(self, path: Path) -> str:
        """Return ``path`` for users and models: relative to the root, by its lent name, from ``~``, or absolute."""
        relative = self._relative(path, self.root)
        if relative is not None:
            return relative
        names = (f"{one.name}/{path.relative_to(one.folder)}" for one in self.lent if path.is_relative_to(one.folder))
        return next(names, None) or from_home(path)

    @staticmethod
    def _relative(path: Path, root: Path) -> str | None:
        text, base = str(path), str(root)
        if text == base:
            return "."
        if text.startswith(base.rstrip("/") + "/"):
            return text[len(base.rstrip("/")) + 1 :]
        depth = len(root.parts)
        above = Path(*path.parts[:depth]) if len(path.parts) >= depth else path
        # Only if the file system treats both spellings as one folder.
        if folded(above.as_posix()) == folded(root.as_posix()) and _same(above, root):
            return PurePath(*path.parts[depth:]).as_posix()
        return None


def is_secret(path: PurePath) -> bool:
    """Return whether ``path`` names a file whose content must not reach a model: ``.env``, SSH keys, credentials."""
    parts = [folded(part) for part in path.parts]
    name = parts[-1] if parts else ""
    if not _SECRET_PARTS.isdisjoint(parts[:-1]):
        return True
    if name in _SECRET_PLAIN or _SECRET_NAME.match(name):
        return not _OPEN_NAME.match(name)
    if name in _SECRET_PARTS:
        return True
    if name in SECRET_IN_HOME and path.parent == PurePath(os.path.expanduser("~")):  # noqa: PTH111 - must not raise
        return True
    return tail_matches(parts, _SECRET_TAIL)


@lru_cache(maxsize=4_096)
def folded(text: str) -> str:
    """Return ``text`` normalised so that spellings which some file system treats as the same file are equal."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", _UNSEEN.sub("", text)).casefold()


def tail_matches(parts: list[str], patterns: re.Pattern[str]) -> bool:
    """Return whether the end of a path of these folded parts matches one of ``patterns``."""
    return bool(patterns.match("/" + "/".join(part.strip("/") for part in parts if part != "/")))


def _has_bytes(text: str) -> bool:
    """Return whether ``text`` can be a file name; bytes that are not UTF-8 appear as surrogates."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def _as_named(path: Path) -> Path:
    """Return ``path`` with its replacement characters resolved to the original bytes, if exactly one name fits.

    Raises:
        PathRefused: several names fit.
    """
    found = Path(path.anchor)
    for part in path.parts[1:]:
        if UNREADABLE in part and not os.path.lexists(found / part):
            try:
                names = [name.name for name in found.iterdir() if clean_text(name.name) == part]
            except OSError:
                names = []
            if len(names) > 1:
                message = f"{_brief(part)} fits {len(names)} files with lookalike names."
                raise PathRefused(message, "Rename one of them.", malformed=False)
            part = names[0] if names else part
        found /= part
    return found


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _from_address(text: str) -> str:
    """Return the path of a ``file://`` address; any other text unchanged."""
    if text[:5].lower() != "file:":
        return text
    address = urlsplit(text)
    if address.netloc.lower() not in {"", "localhost"} or not address.path.startswith("/"):
        raise PathRefused(f"{_brief(text)} names a file on another machine.", "Name a local file.")
    path = unquote(address.path)
    if "\0" in path:
        raise PathRefused(f"{_brief(text)} holds a character that paths can't have.", "Check the path.")
    return path


def _brief(text: str) -> str:
    return repr(clipped(text, 80))


@frozen
class TouchedPath:
    """A path that a call touches, as rules see it. ``relative``: from the root; ``places``: from each folder of the
    workspace that contains it."""

    path: Path
    relative: str | None
    places: tuple[str, ...]
    inside: bool
    secret: bool
    guarded: bool

    @property
    def shown(self) -> str:
        return self.path.as_posix() if self.relative is None else self.relative
