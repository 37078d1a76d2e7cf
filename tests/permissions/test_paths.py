"""What a text names: resolved before it is judged, whatever the spelling."""

from __future__ import annotations

import os
from pathlib import Path, PurePath

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ba_tui.permissions.paths import PathRefused, Workspace, held_paths, is_secret
from ba_tui.permissions.sandbox.workspace_scan import is_protected


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("")
    (tmp_path / "other").mkdir()
    return folder


def test_plain_paths_start_from_the_root_or_the_folder_given(root: Path) -> None:
    workspace = Workspace(root)
    assert workspace.resolve("src/a.py") == root / "src" / "a.py"
    assert workspace.resolve("a.py", root / "src") == root / "src" / "a.py"
    assert workspace.resolve(".") == root
    assert workspace.shown(root / "src" / "a.py") == "src/a.py"
    assert workspace.shown(root) == "."
    assert workspace.shown(Path("/etc/hosts")) == "/etc/hosts"


@pytest.mark.parametrize(
    "text",
    [
        "../other/x",
        "src/../../other/x",
        "/etc/passwd",
        "~",
        "~/x",
        "file:///etc/passwd",
        "file://localhost/etc/passwd",
        "FILE:///etc/passwd",
        "file:///etc/%70asswd",
        "out/x",
        "loop/../out/x",
        "src/././../../other",
        "//etc/passwd",
        "/proc/self/root/etc/passwd",
        "new/../../other",
    ],
)
def test_every_way_out_is_seen(root: Path, text: str) -> None:
    (root / "out").symlink_to(root.parent / "other")
    workspace = Workspace(root)
    assert not workspace.contains(workspace.resolve(text))


def test_links_inside_stay_inside(root: Path) -> None:
    (root / "link").symlink_to("src")
    workspace = Workspace(root)
    assert workspace.resolve("link/a.py") == root / "src" / "a.py"
    assert workspace.contains(workspace.resolve("link/new.py"))


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="needs /proc")
def test_the_process_folder_is_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root.parent / "other")
    workspace = Workspace(root)
    assert workspace.resolve("/proc/self/cwd/x") == root.parent / "other" / "x"
    assert not workspace.contains(workspace.resolve("/proc/self/cwd/x"))


@pytest.mark.parametrize(
    "text", ["/proc/self/cwd/x", "//proc/./self//cwd/x", "/proc/thread-self/cwd/x", "/proc/self/cwd/../src/x"]
)
def test_to_a_command_its_own_folder_is_where_it_runs(root: Path, text: str) -> None:
    expected = root / "src" / "x"
    assert Workspace(root).resolve(text, root / "src") == expected
    assert Workspace(root).named(text, root / "src") == expected


def test_descriptors_of_a_command_are_not_ours(root: Path) -> None:
    with (root / "src" / "a.py").open() as ours:
        text = f"/dev/fd/{ours.fileno()}"
        assert Workspace(root).resolve(text) == root / "src" / "a.py"
        assert Workspace(root).resolve(text, root) == Path(text)
    assert Workspace(root).resolve("/dev/stdin", root) == Path("/dev/stdin")


def test_a_held_path_leads_where_it_led_first(root: Path) -> None:
    workspace, link = Workspace(root), root / "link"
    link.symlink_to("src")
    with held_paths():
        first = workspace.resolve("link/a.py")
        link.unlink()
        link.symlink_to(root.parent / "other")
        assert workspace.resolve("link/a.py") == first == root / "src" / "a.py"
        with held_paths():
            assert workspace.resolve("link/a.py") == root.parent / "other" / "a.py"
    assert workspace.resolve("link/a.py") == root.parent / "other" / "a.py"


def test_a_root_reached_by_a_link_is_the_same_root(root: Path) -> None:
    (root.parent / "alias").symlink_to(root)
    workspace = Workspace(root.parent / "alias")
    assert workspace.contains(workspace.resolve(str(root / "src" / "a.py")))
    assert workspace.shown(workspace.resolve(str(root.parent / "alias" / "src"))) == "src"


def test_extra_folders_belong_to_it(root: Path) -> None:
    workspace = Workspace(root, (root.parent / "other",))
    assert workspace.contains(workspace.resolve("../other/x"))
    assert workspace.shown(workspace.resolve("../other/x")) == str(root.parent / "other" / "x")
    assert not workspace.contains(workspace.resolve("../otherwise"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "a\0b",
        "\0",
        "\ud800",
        "file:///a%00b",
        "file://server/share",
        "~nobody-of-that-name/x",
        pytest.param("x" * 300, id="long name"),
        pytest.param("a/" * 3000, id="long path"),
    ],
)
def test_what_is_no_path_is_refused_shortly(root: Path, text: str) -> None:
    with pytest.raises(PathRefused) as refused:
        Workspace(root).resolve(text)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 200


def test_a_link_to_itself_is_refused(root: Path) -> None:
    (root / "loop").symlink_to("loop")
    with pytest.raises(PathRefused, match="symbolic link to itself"):
        Workspace(root).resolve("loop")


def test_a_folder_without_rights_is_still_judged(root: Path) -> None:
    shut = root / "shut"
    shut.mkdir(mode=0o000)
    try:
        workspace = Workspace(root)
        assert workspace.contains(workspace.resolve("shut/inner/x"))
        assert not workspace.contains(workspace.resolve("shut/../../other"))
    finally:
        shut.chmod(0o700)


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "a/.env.local",
        ".ENV",
        ".envrc",
        "/home/ann/.ssh/id_rsa",
        "/home/ann/.SSH/config",
        ".ssh",
        "x/.aws/credentials",
        "/home/ann/.netrc",
        "/home/ann/.config/gh/hosts.yml",
        "/etc/shadow",
        "/proc/self/environ",
        "/proc/12/environ",
        "deploy/id_ed25519",
        "/home/ann/.docker/config.json",
        "/Users/ann/Library/Keychains/login.keychain-db",
        ".ssh/.env.example",
        ".e\u200cnv",
        "\ufeff.env",
        ".ſsh/config",
        "config/master.key",
        "deploy/prod.env",
        "env.backup",
        ".env.production",
        ".streamlit/secrets.toml",
        "secrets.yaml",
        "main.tfvars",
        "prod.auto.tfvars.json",
        "terraform.tfstate",
        "terraform.tfstate.backup",
        "credentials.json",
        "service-account-prod.json",
        "local.settings.json",
        ".Renviron",
        "wp-config.php",
        "LocalSettings.php",
        "vault.kdbx",
        "release.JKS",
        "cert.p12",
        "kubeconfig",
        "office.ovpn",
        ".s3cfg",
        ".boto",
        "terraform.rc",
        "robomongo.json",
        "sftp-config.json",
        ".psql_history",
        "client_secret_12.apps.json",
    ],
)
def test_secrets_are_known(path: str) -> None:
    assert is_secret(PurePath(path))


@pytest.mark.parametrize(
    "path",
    [
        ".env.example",
        "a/.env.example",
        "environment.py",
        "src/env.py",
        "docs/ssh.md",
        "id_rsa.pub",
        "c.json",
        "id_rsa_test.py",
        ".env.sample",
        ".env.local.example",
        ".env.template",
        ".env.dist",
        "example.env",
        "main.tfvars.example",
        "secrets.py",
        "src/secrets/store.py",
        "appsettings.Development.json",
        "locales/en/auth.json",
        "credentials.md",
        "main.tf",
        "history.md",
        ".",
        "/",
        ".npmrc",
    ],
)
def test_other_files_are_no_secrets(path: str) -> None:
    assert not is_secret(PurePath(path))


def test_the_persons_own_registry_login_is_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert is_secret(PurePath("/home/ann/.npmrc"))


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".git",
        "sub/.git/hooks/pre-commit",
        ".GIT/config",
        ".github/workflows/ci.yml",
        ".gitlab-ci.yml",
        ".ba/config.yaml",
        ".claude/settings.json",
        "/home/ann/.bashrc",
        ".zshrc",
        "Jenkinsfile",
        ".mcp.json",
        "/etc/profile.d/x.sh",
        "/etc/profile",
        "/home/ann/.config/fish/config.fish",
        ".vscode/settings.json",
        ".cursor/mcp.json",
        ".devcontainer/devcontainer.json",
        "sub/.cargo/config.toml",
        ".yarn/releases/yarn.cjs",
        ".npmrc",
        "mise.toml",
        ".venv/bin/ruff",
        "web/node_modules/.bin/eslint",
        ".venv/lib/python3.11/site-packages/x.pth",
        ".mvn/jvm.config",
        ".terraform/providers/x",
        ".envrc",
        "web/.envrc",
        ".husky/pre-commit",
        ".gitmodules",
        ".idea/workspace.xml",
        "app.code-workspace",
        "lefthook.yml",
        ".Rprofile",
        ".vimrc",
        "bunfig.toml",
        "pip.conf",
        ".hg/hgrc",
        "sitecustomize.py",
        ".gitlab/ci/build.yml",
        "buildspec.yml",
        ".githooks/pre-commit",
        ".kiro/settings/mcp.json",
        "opencode.json",
        "flake.nix",
        ".bsp/mill.json",
        ".gitpod.yml",
        "tools/bazel",
        ".run/app.run.xml",
    ],
)
def test_what_decides_on_later_runs_is_protected(path: str) -> None:
    assert is_protected(PurePath(path))


@pytest.mark.parametrize(
    "path",
    [
        "src/a.py",
        ".github/README.md",
        ".gitignore",
        ".yarn/x",
        "Cargo.toml",
        "git/config",
        "profile",
        "bin/x",
        "README.md",
    ],
)
def test_other_files_are_not_protected(path: str) -> None:
    assert not is_protected(PurePath(path))


segments = st.sampled_from(["..", ".", "src", "link", "out", "new", "~", "", "a.py", "deep", " ", "..."])


@settings(max_examples=300, deadline=None)
@given(parts=st.lists(segments, min_size=1, max_size=8), absolute=st.booleans())
@example(parts=["out", "..", "work", "src"], absolute=False)
def test_the_verdict_is_about_the_file_that_would_be_opened(root: Path, parts: list[str], absolute: bool) -> None:
    if not (root / "out").is_symlink():
        (root / "out").symlink_to(root.parent / "other")
        (root / "link").symlink_to("src")
        (root / "src" / "deep").mkdir()
        (root / "src" / "deep" / "link").symlink_to("../../..")
    text = "/".join(parts) or "."
    if absolute:
        text = f"{root}/{text}"
    workspace = Workspace(root)
    try:
        path = workspace.resolve(text)
    except PathRefused:
        assert not text.strip()
        return
    opened = os.path.realpath(root / Path(text).expanduser())
    assert workspace.contains(path) == (opened == str(root) or opened.startswith(f"{root}/"))
    assert ".." not in path.parts
    assert workspace.resolve(str(path)) == path


secret_parts = st.sampled_from([".env", ".ENV", ".env.local", ".ssh/id_rsa", ".Ssh/x", "sub/.env", "plain"])
detours = st.lists(st.sampled_from(["./", "sub/../", "//", "sub/./../", "in/", "here/"]), max_size=4)


@settings(max_examples=120, deadline=None)
@given(
    detour=detours, name=secret_parts, lead=st.sampled_from(["", "{root}/", "file://{root}/", "/proc/self/root{root}/"])
)
def test_no_detour_hides_a_secret(root: Path, detour: list[str], name: str, lead: str) -> None:
    if not (root / "in").is_symlink():
        (root / "in").symlink_to(".")
        (root / "here").symlink_to(root)
        (root / "sub" / "deep").mkdir(parents=True)
        (root / ".env").write_text("")
        (root / "plain").symlink_to(".env")
    text = lead.format(root=root) + "".join(detour).lstrip("/") + name
    path = Workspace(root).resolve(text)
    assert is_secret(path)
    assert Workspace(root).contains(path)
