"""Secrets are known by their looks, what only resembles one is left alone, and looking takes no time of note."""

from __future__ import annotations

import base64
import random
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.permissions.secrets.scanner import find, placeholders, redact, redact_value

LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


def drawn(count: int, letters: str = LETTERS) -> str:
    """The same at each run, and no secret of anybody."""
    return "".join(random.Random(count).choices(letters, k=count))


def number_of(user: int) -> str:
    """A user's number as it begins a token."""
    return base64.urlsafe_b64encode(str(user).encode()).decode().rstrip("=")


PEM = "\n".join(drawn(64) for _ in range(4))
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{PEM}\n-----END RSA PRIVATE KEY-----"


def packed(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


SECRETS = {
    "anthropic": ("Anthropic key", f"sk-ant-api03-{drawn(90)}"),
    "openai": ("OpenAI key", f"sk-proj-{drawn(60)}"),
    "older": ("API key", f"sk-{drawn(48)}"),
    "aws": ("AWS access key", f"AKIA{drawn(16, string.ascii_uppercase + '234567')}"),
    "google": ("Google API key", f"AIza{drawn(35)}"),
    "oauth": ("Google OAuth token", f"ya29.{drawn(60)}"),
    "github": ("GitHub token", f"ghp_{drawn(36)}"),
    "fine": ("GitHub token", f"github_pat_{drawn(22)}_{drawn(59)}"),
    "gitlab": ("GitLab token", f"glpat-{drawn(20)}"),
    "slack": ("Slack token", f"xoxb-123456789012-{drawn(24)}"),
    "stripe": ("Stripe key", f"sk_live_{drawn(24)}"),
    "npm": ("npm token", f"npm_{drawn(36)}"),
    "pypi": ("PyPI token", f"pypi-AgEIcHlwaS5vcmc{drawn(100)}"),
    "face": ("Hugging Face token", f"hf_{drawn(34)}"),
    "twilio": ("Twilio key", f"SK{drawn(32, HEX)}"),
    "sendgrid": ("SendGrid key", f"SG.{drawn(22)}.{drawn(43)}"),
    "telegram": ("Telegram token", f"1234567890:AA{drawn(33)}"),
    "telegram, a short number": ("Telegram token", f"48291:AA{drawn(33)}"),
    "telegram, another beginning": ("Telegram token", f"7812345678:A{drawn(34, LETTERS + '_-')}"),
    "discord of 2015": ("Discord token", f"{number_of(19862248347192524)}.{drawn(6)}.{drawn(27)}"),
    "discord": ("Discord token", f"{number_of(968556348390391859)}.G{drawn(5)}.{drawn(38, LETTERS + '_-')}"),
    "discord, nineteen digits": ("Discord token", f"{number_of(1301590567989547028)}.G{drawn(5)}.{drawn(38)}"),
    "discord, two factors": ("Discord token", f"mfa.{drawn(84)}"),
    "discord webhook": ("Discord webhook", f"discord.com/api/webhooks/968556348390391859/{drawn(68)}"),
    "discord webhook, versioned": ("Discord webhook", f"discord.com/api/v10/webhooks/968556348390391859/{drawn(68)}"),
    "slack, rotated": ("Slack token", f"xoxe.xoxp-1-{drawn(60)}"),
    "slack workflow": ("Slack webhook", f"hooks.slack.com/workflows/T{drawn(10)}/A{drawn(10)}/{drawn(40)}"),
    "gitlab runner": ("GitLab token", f"GR1348941{drawn(20)}"),
    "bedrock": ("AWS Bedrock key", f"ABSK{drawn(120)}="),
    "airtable": ("Airtable token", f"pat{drawn(14)}.{drawn(64, HEX)}"),
    "terraform": ("Terraform token", f"{drawn(14)}.atlasv1.{drawn(67)}"),
    "rubygems": ("RubyGems key", f"rubygems_{drawn(48, HEX)}"),
    "tailscale": ("Tailscale key", f"tskey-auth-{drawn(12)}CNTRL-{drawn(32)}"),
    "pulumi": ("Pulumi token", f"pul-{drawn(40, HEX)}"),
    "azure": ("Azure storage key", f"AccountKey={drawn(86)}=="),
    "jwt": ("JSON web token", f"eyJ{drawn(20)}.eyJ{drawn(60)}.{drawn(43)}"),
    "pem": ("private key", f"-----BEGIN RSA PRIVATE KEY-----\n{PEM}\n-----END RSA PRIVATE KEY-----"),
    "cut": ("private key", f"-----BEGIN OPENSSH PRIVATE KEY-----\n{PEM}"),
    "json": ("private key", f"-----BEGIN PRIVATE KEY-----\\n{drawn(600)}\\n-----END PRIVATE KEY-----"),
}


@pytest.mark.parametrize(("kind", "secret"), SECRETS.values(), ids=SECRETS.keys())
def test_secrets_of_vendors_are_found_whole(kind: str, secret: str) -> None:
    text = f"before {secret} after"
    (found,) = find(text)
    assert (found.kind, text[found.start : found.end].rstrip()) == (kind, secret.rstrip())
    assert redact(text).startswith(f"before [secret: {kind}]")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("postgres://bob:hunter2secret@db/x", "postgres://bob:[secret: password in an address]@db/x"),
        ("redis://:s3cr3tpw@cache:6379", "redis://:[secret: password in an address]@cache:6379"),
        (f"https://{drawn(40)}@github.com/x", "https://[secret: token in an address]@github.com/x"),
        ("password = 'hunter2x'", "password = '[secret: password]'"),
        ("Server=x;User Id=sa;Password=aB3!xk9_z;", "Server=x;User Id=sa;Password=[secret: password];"),
        ("password: correct-horse-42-battery", "password: [secret: password]"),
        ("DB_PASSWORD=Tr0ub4dor3", "DB_PASSWORD=[secret: password]"),
        (f"Authorization: Bearer {drawn(30)}", "Authorization: Bearer [secret: token]"),
        ("Authorization: Basic Ym9iOmh1bnRlcjJzZWNyZXQ=", "Authorization: Basic [secret: token]"),
        (f"aws_secret_access_key = {drawn(40)}", "aws_secret_access_key = [secret: token]"),
        ('{"api_key": "0123456789abcdef"}', '{"api_key": "[secret: token]"}'),
        ("export MY_SECRET_KEY=0123456789abcdef", "export MY_SECRET_KEY=[secret: token]"),
        (f"TWILIO_AUTH_TOKEN={drawn(32, HEX)}", "TWILIO_AUTH_TOKEN=[secret: token]"),
        (f"?client_secret={drawn(32)}&page=2", "?client_secret=[secret: token]&page=2"),
        ('{\\"password\\":\\"Tr0ub4dor3\\"}', '{\\"password\\":\\"[secret: password]\\"}'),
        ("<password>Tr0ub4dor3</password>", "<password>[secret: password]</password>"),
        ('<add key="Password" value="Tr0ub4dor3"/>', '<add key="Password" value="[secret: password]"/>'),
        ("x --db-password Tr0ub4dor3 -v", "x --db-password [secret: password] -v"),
        (f"x --token {drawn(32)}", "x --token [secret: token]"),
        (f"Cookie: a=b; session={drawn(64)}", "Cookie: a=b; session=[secret: token]"),
        ('"auth": "dXNlcjpUcjB1YjRkb3Iz"', '"auth": "[secret: encoded secret]"'),
        (f"blob: {packed(f'x: ghp_{drawn(36)}')}", "blob: [secret: encoded secret]"),
        (f"client-key-data: {packed(KEY)}", "client-key-data: [secret: encoded private key]"),
        (f'"SessionToken": "{drawn(800)}"', '"SessionToken": "[secret: token]"'),
        (f"https://a.blob/x?sig={drawn(43)}%3D&se=1", "https://a.blob/x?[secret: Azure signature]&se=1"),
        (f"PrivateKey = {drawn(43)}=", "PrivateKey = [secret: token]"),
    ],
)
def test_what_stands_around_gives_secrets_away(text: str, left: str) -> None:
    assert redact(text) == left


@pytest.mark.parametrize("lead", ["{}\t", "{:4} ", "{}: ", "+", "> ", "| ", "keys/a.pem:{}:", "keys/a.pem-{}-", "    "])
@pytest.mark.parametrize("whole", [True, False])
def test_a_key_is_found_whole_where_its_lines_are_numbered_or_marked(lead: str, whole: bool) -> None:
    lines = KEY.splitlines()[: None if whole else -1]
    text = "\n".join(f"{lead.format(number)}{line}" for number, line in enumerate(lines, 98))
    assert redact(text) == f"{lead.format(98)}[secret: private key]"


@pytest.mark.parametrize(
    "text",
    [
        "see --password and --token for more",
        "<token>value</token>",
        "integrity sha512-" + "YWJj" * 20,
        "Cookie: theme=dark; lang=en",
        "auth: required-for-everything",
        '"auth": "bm90aGluZyB0byBzZWU="',
    ],
)
def test_what_looks_a_little_like_that_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "5b8c2a6e-1f0d-4c3b-9a7e-2d4f6a8b0c1e",
        f"commit {drawn(40, HEX)}",
        f"integrity: sha512-{drawn(86)}==",
        "sk-xxx",
        "sk-xxxxxxxxxxxxxxxxxxxxxxxx",
        "sk-your-key-here-1234567890abcdef",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "api_key=<your key>",
        "api_key: YOUR_API_KEY_HERE",
        "AKIAIOSFODNN7EXAMPLE",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "password=$DB_PASS",
        "password: ${DB_PASSWORD}",
        "password: str",
        "password: short",
        "password = self.password",
        "postgres://user:password@localhost/db",
        "https://example.org/a:b@c",
        "token = os.environ['TOKEN']",
        "token = get_token()",
        "token: str | None = None",
        f"12:34:56:A{drawn(34)}",
        "localhost:8080:AUTHENTICATION_FAILED_FOR_THE_SERVER",
        f"MTIzNDU2.{drawn(6)}.{drawn(27)}",
        f"OTHERTHINGSTHATARENONUMBERS.{drawn(6)}.{drawn(38)}",
        f"mfa.{drawn(20)}",
        f"pattern.{drawn(64, HEX)}",
        "tokenizer = AutoTokenizer.from_pretrained('x')",
        "max_tokens: 4096",
        f"next_page_token: {drawn(40)}",
        "api_key=settings.openai_api_key",
        "Secret: kubernetes.io/service-account-token",
        "bearer of bad news tomorrow morning",
        "the task-oriented design asks risk-averse people",
        "risk-management-software-2024-edition",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(f"before {text} after") == f"before {text} after"


def test_the_name_of_a_field_counts_in_json() -> None:
    value = {"password": "hunter2x", "note": "plain", "list": [f"ghp_{drawn(36)}"], "n": 3}
    assert redact_value(value) == {
        "password": "[secret: value]",
        "note": "plain",
        "list": ["[secret: GitHub token]"],
        "n": 3,
    }


def test_marks_that_were_left_are_known_again() -> None:
    text = redact(f"a ghp_{drawn(36)} b PASSWORD=Tr0ub4dor3")
    assert placeholders(text) == ("[secret: GitHub token]", "[secret: password]")
    assert placeholders("see [secret: santa] and [secret: GitHub") == ()


PIECES = [
    "sk-",
    "token=",
    "://a:",
    "eyJaaaaaaaa.",
    "-----BEGIN PRIVATE KEY-----",
    "bearer ",
    "\u0130",
    " ",
    '"',
    "aB3dE5gH7jK9",
]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.sampled_from([*PIECES, *(secret for _, secret in SECRETS.values())]), st.text(max_size=8)))
)
def test_redacting_keeps_the_rest_and_again_changes_nothing(parts: list[str]) -> None:
    text = " ".join(parts)
    last = 0
    for secret in find(text):
        assert last <= secret.start < secret.end <= len(text)
        last = secret.end
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize("piece", [*PIECES, "token", "key-", "://a:b1c2@", "password=a1b2c3d4e5 "])
def test_a_long_text_comes_to_an_end(piece: str) -> None:
    assert redact(piece * (100_000 // len(piece)))
