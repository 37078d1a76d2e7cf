"""Masked copies of files that are named as secret: of equal length, parsable, and without any value."""

from __future__ import annotations

import configparser
import json
import tomllib
from pathlib import PurePath
from xml.etree import ElementTree

import pytest
import yaml

from ba_tui.permissions.secrets.masked_copies import masked_copy
from ba_tui.permissions.secrets.masking import KnownSecrets, masked_places

DRAWN = "q7Rk-82hVn_51xLzQ"
WORD = "correcthorse"
GITHUB = "ghp_" + "q7Rk82hVn51xLzQ4mTb9" * 2

FILES = {
    ".env": f'# a comment\nexport A={DRAWN}\nDEBUG=true\r\nPORT=5432\nPASS="{WORD} battery" # note\n'
    f'KEY="-----BEGIN PRIVATE KEY-----\nMII{DRAWN}\n-----END PRIVATE KEY-----"\n#OLD={WORD}\n# so {DRAWN} was it\n'
    f"URL=postgres://u:{WORD}@h/db?x=1\nEMPTY=\nPÄSS=zürich-{WORD}\nJUST {WORD} TEXT",
    "credentials.json": json.dumps(
        {
            "a": {"b": DRAWN, "n": 5432, "f": 0.25, "t": True, "l": [WORD, DRAWN, None]},
            "key": f"-----BEGIN PRIVATE KEY-----\nMII{DRAWN}\n-----END PRIVATE KEY-----\n",
            'e"x': f'qu"ote {WORD}',
        },
        indent=2,
    ),
    "secrets.toml": f'title = "{WORD}"\nn = 12\nd = 1979-05-27T07:32:00Z\n[db."x y"] # note\npassword = \'{DRAWN}\'\n'
    f'l = [ "{WORD}", "b",\n  "{DRAWN}" ]\ni = {{ a = "{WORD}", b = 1 }}\nm = """\nabc {WORD}\n"""\n[[t]]\nok = true\n',
    "secrets.yaml": f"# hi\n---\napi:\n  token: {DRAWN}\n  port: 8080\n  on: true\n  list:\n    - {WORD}\n"
    f"    - name: {WORD}\n      'k y': \"{DRAWN} x\" # c\n  flow: {{a: {WORD}, b: [1, {DRAWN}]}}\n  block: |\n"
    f"    line {WORD}\n\n    more {DRAWN}\n  fold: >-\n    {WORD}\n  anch: &x {WORD}\n  ref: *x\n"
    f"  tag: !!str {WORD}\n  plain: a {WORD}\n    goes on {WORD}\n  url: https://u:{WORD}@h:1/x\nempty:\n",
    "main.tfvars": f'# c\npassword = "{WORD}"\nn = 3\nl = ["{WORD}", "x"]\nm = {{\n  a = "{DRAWN}"\n'
    f'  b : "{WORD}"\n}}\n'
    f"h = <<EOF\n{WORD}\n{DRAWN}\nEOF\n",
    "wp-config.php": f"<?php\n// settings\ndefine( 'DB_PASSWORD', '{WORD}' );\ndefine('AUTH_KEY', '{DRAWN}');\n"
    f"$c = array('user' => '{WORD}', \"p\" => \"{DRAWN}\");\n/* {DRAWN} */\n",
    ".my.cnf": f"[client]\nuser = root\npassword = {WORD}\n; old = {WORD}\n[mysqldump]\nquick\n",
    "filezilla.xml": f'<?xml version="1.0" encoding="UTF-8"?>\n<F v="{WORD}"><S a="1"><Host>{WORD}</Host>'
    f'<Pass encoding="base64">{DRAWN}</Pass><!-- {WORD} --><c><![CDATA[{DRAWN}]]></c></S></F>\n',
    ".netrc": f"machine h.example.com login me password {WORD}\n",
    ".pgpass": f"host:5432:db:user:{DRAWN}\n",
    "master.key": f"{DRAWN}\n",
    "id_rsa": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{DRAWN}\n-----END OPENSSH PRIVATE KEY-----\n",
    "x.kdbx": f"\0\1{DRAWN}",
    "other-name-of-a-link": f"A={DRAWN}\nB={WORD}\n",
    "broken.tfvars.json": f'{{"a": "{DRAWN}", "b": {WORD} "{DRAWN}\n{WORD}',
    "secrets.yml": f'a: "{DRAWN}\nb: [{WORD}\n\tc: {DRAWN}',
    ".psql_history": f"alter role x password '{WORD}';\nselect '{DRAWN}';\n",
}


@pytest.mark.parametrize("name", FILES)
def test_no_piece_of_a_value_is_left_and_every_line_keeps_its_length(name: str):
    data = FILES[name].encode()
    copy = masked_copy(data, PurePath(name)).data
    assert [len(line) for line in copy.split(b"\n")] == [len(line) for line in data.split(b"\n")]
    text = copy.decode()
    for value in (DRAWN, WORD):
        assert not [value[at : at + 6] for at in range(len(value) - 5) if value[at : at + 6] in text]


def test_programs_still_parse_the_copies_and_find_the_same_keys():
    def copy(name: str) -> str:
        return masked_copy(FILES[name].encode(), PurePath(name)).data.decode()

    made = json.loads(copy("credentials.json"))
    assert (list(made["a"]), made["a"]["n"], made["a"]["t"]) == (["b", "n", "f", "t", "l"], 1111, True)
    assert list(tomllib.loads(copy("secrets.toml"))["db"]["x y"]) == ["password", "l", "i", "m"]
    kept = yaml.safe_load(copy("secrets.yaml"))["api"]
    assert (kept["port"], kept["ref"], len(kept["list"])) == (1111, kept["anch"], 2)
    read = configparser.ConfigParser(allow_no_value=True)
    read.read_string(copy(".my.cnf"))
    assert read.options("client") == ["user", "password"]
    assert [each.tag for each in ElementTree.fromstring(copy("filezilla.xml")).iter()][:3] == ["F", "S", "Host"]
    lines = copy(".env").split("\n")
    assert lines[:3] == ["# a comment", "export A=masked-by-baxxxxx", "DEBUG=true\r"]
    assert lines[4].endswith('" # note')


@pytest.mark.parametrize("name", [".env", "credentials.json", "secrets.yaml", ".netrc", "wp-config.php", ".pgpass"])
def test_the_values_are_known_with_escapes_undone(name: str):
    known = KnownSecrets()
    for value, kind in masked_copy(FILES[name].encode(), PurePath(name)).values:
        known.add([value], kind)
    assert {DRAWN, WORD} & known.values().keys()
    assert not [value for value in known.values() if value in {"-----BEGIN PRIVATE KEY-----", "host", "comment"}]
    if name == "credentials.json":
        assert f'qu"ote {WORD}' in known.values()


def test_ordinary_values_of_a_secret_file_are_masked_but_not_searched_for_elsewhere():
    data = b"APP_NAME=My little shop\nHOST=shop.example.com\nSHOP_PASSWORD=simplewords\n"
    copy = masked_copy(data, PurePath(".env"))
    assert b"shop" not in copy.data.lower().replace(b"shop_password", b"")
    assert dict(copy.values) == {"simplewords": "value"}


def test_other_files_lose_only_what_looks_like_a_secret():
    data = f"name,amount,note\nAnn,12.50,{GITHUB}\r\nÖrs,0007,x\n".encode()
    copy = masked_places(data)
    assert copy
    assert copy.data == data.replace(GITHUB.encode(), b"masked-by-ba".ljust(len(GITHUB), b"x"))
    assert copy.values == ((GITHUB, "GitHub token"),)
    assert masked_places(b"name,amount\nAnn,12\n") is None
    assert masked_places(b"\0\1" + data) is None
