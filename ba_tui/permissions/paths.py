"""Paths: what a text from a model really names, whether it lies in the workspace, and which paths need more care.

Nothing is opened here; who opens a path checks it again afterwards. Verdicts are given in ``policy``.
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
"""Names of files whose every value is secret, in lower case. The rule sets of gitleaks, detect-secrets and GitHub's
gitignore templates name them. Files that only sometimes hold secrets are left to the search of their content."""
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
"""Files that document which values there are: templates, and public halves of keys."""

_OWN_FOLDER = regex(r"/+(?:\./+)*proc/+(?:\./+)*(?:thread-)?self/+(?:\./+)*cwd(?:/+|$)")
"""Where a command runs, as it may call that itself; to us that name means another folder."""
_DESCRIPTOR = regex(r"/(?:dev/(?:fd/|std(?:in|out|err)$)|proc/(?:thread-)?self/fd/)")
_UNSEEN = regex("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Characters that some file systems leave out of names."""
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
"""What models and people are shown for bytes of a name that are no UTF-8."""
LONGEST = 4_096
LONGEST_NAME = 255


@contextmanager
def held_paths() -> Generator[None]:
    """Within it a path leads where it led when it was first resolved, so that what was judged is what is opened: a
    link that comes in between is then one that nobody follows."""
    token = _HELD.set({})
    try:
        yield
    finally:
        _HELD.reset(token)


class PathRefused(BaError):
    """A text that can't be a path; without ``malformed`` one that can't be for what is wanted."""

    kind = "invalid_parameters"

    def __init__(self, message: str, hint: str = "", *, malformed: bool = True) -> None:
        super().__init__(message, hint)
        self.malformed = malformed


@frozen
class ReadOnlyFolder:
    """A folder outside whose files may be read as ``name/…``; the workspace's own files come first."""

    name: str
    folder: Path


@frozen
class Workspace:
    """The folders to work in. ``root`` and ``extra`` are resolved once; relative texts start from ``root``.
    ``lent``: further ones to read from, under names of their own; ``started``: files in there that the user's hooks
    start, outside of any sandbox, or that instruction files import: they are protected whatever their names."""

    root: Path
    extra: tuple[Path, ...] = ()
    lent: tuple[ReadOnlyFolder, ...] = ()
    started: frozenset[Path] = frozenset()
    heads: frozenset[str] = field(init=False, default=frozenset())
    """What the paths of lent files begin with."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", Path(os.path.realpath(self.root)))
        object.__setattr__(self, "extra", tuple(Path(os.path.realpath(folder)) for folder in self.extra))
        lent = tuple(ReadOnlyFolder(one.name, Path(os.path.realpath(one.folder))) for one in self.lent)
        object.__setattr__(self, "lent", lent)
        object.__setattr__(self, "heads", frozenset(PurePath(one.name).parts[0] for one in lent))

    def resolve(self, text: str, cwd: Path | None = None) -> Path:
        """The absolute path that ``text`` names, with ``~``, ``..``, ``file://`` and every link followed.

        Raises:
            PathRefused: no path can be named so.
        """
        return self._resolved(text, self._joined(text, cwd), cwd)

    def _resolved(self, text: str, joined: Path, cwd: Path | None) -> Path:
        held = _HELD.get()
        if held is not None and joined in held:
            return held[joined]
        # A descriptor of ours says nothing about one of a command.
        own = cwd is not None and bool(_DESCRIPTOR.match(str(joined)))
        try:
            resolved = Path(os.path.normpath(joined) if own else os.path.realpath(joined))
        except OSError as error:
            # Some links of the kernel's can't even be read.
            raise PathRefused(f"{_brief(text)} can't be resolved: {error.strerror}.", malformed=False) from error
        if held is not None:
            held[joined] = resolved
        if not own and os.path.islink(resolved):  # noqa: PTH114 - must not raise
            raise PathRefused(f"{_brief(text)} is a symbolic link to itself.", "Name the file itself.")
        return resolved

    def named(self, text: str, cwd: Path | None = None) -> Path:
        """As ``resolve``, but links are not followed: what the path is called, not where it leads."""
        return Path(os.path.normpath(self._joined(text, cwd)))

    def both(self, text: str, cwd: Path | None = None) -> tuple[Path, Path]:
        """What ``named`` and ``resolve`` say."""
        joined = self._joined(text, cwd)
        name, resolved = os.path.normpath(joined), self._resolved(text, joined, cwd)
        return resolved if name == str(resolved) else Path(name), resolved

    def _joined(self, text: str, cwd: Path | None) -> Path:
        # ``..`` stays in: behind a link it means the folder above the link's target.
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
                # A new file of that name is the workspace's own.
                return there if os.path.lexists(there) else None
        return None

    def lends(self, path: Path) -> bool:
        """Whether a resolved ``path`` lies in a folder that may be read and never be written."""
        return any(path.is_relative_to(one.folder) for one in self.lent)

    def contains(self, path: Path) -> bool:
        """Whether a resolved ``path`` lies in the workspace."""
        return bool(self.places(path))

    def places(self, path: Path) -> tuple[str, ...]:
        """``path`` from every folder of the workspace that it lies in, with ``/``."""
        found = (self._relative(path, folder) for folder in (self.root, *self.extra))
        return tuple(place for place in found if place is not None)

    def relative(self, path: Path) -> str | None:
        """``path`` from the root, with ``/``; None when it lies elsewhere."""
        return self._relative(path, self.root)

    def shown(self, path: Path) -> str:
        """``path`` for people and models: from the root where it lies there, as it is lent, from the home folder, or
        absolute."""
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
        # Only where the file system itself takes both spellings for one folder.
        if folded(above.as_posix()) == folded(root.as_posix()) and _same(above, root):
            return PurePath(*path.parts[depth:]).as_posix()
        return None


def is_secret(path: PurePath) -> bool:
    """Whether ``path`` holds what nobody should read through a model: ``.env``, SSH keys, stored credentials."""
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
    """``text`` so that spellings which some file system takes for the same file are equal."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", _UNSEEN.sub("", text)).casefold()


def tail_matches(parts: list[str], patterns: re.Pattern[str]) -> bool:
    """Whether a path of these folded parts ends as one of ``patterns`` says."""
    return bool(patterns.match("/" + "/".join(part.strip("/") for part in parts if part != "/")))


def _has_bytes(text: str) -> bool:
    """Whether ``text`` can be the name of a file at all: bytes that are no UTF-8 stand in it as Python writes them."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def _as_named(path: Path) -> Path:
    """``path`` with the bytes that its replacement characters were shown for, where just one name in each folder fits.

    Raises:
        PathRefused: several do.
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
    """The path in a ``file://`` address; any other text as it is."""
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
    return repr(text if len(text) <= 80 else f"{text[:80]}…")


@frozen
class TouchedPath:
    """One path that a call touches, as rules judge it. ``relative``: from the root; ``places``: from each folder of the
    workspace it lies in."""

    path: Path
    relative: str | None
    places: tuple[str, ...]
    inside: bool
    secret: bool
    guarded: bool

    @property
    def shown(self) -> str:
        return self.path.as_posix() if self.relative is None else self.relative
