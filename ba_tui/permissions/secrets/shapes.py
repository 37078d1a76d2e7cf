"""What secrets of known vendors look like: where each begins, and what must follow. Data; secrets.py does the looking.

The shapes are those that the vendors document for secret scanning. Publishable keys and account ids are not among them.
"""

from __future__ import annotations

import re
from functools import cache

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen


@frozen
class Shape:
    """``starts``: literals that a secret of this kind begins with; ``rest``: what follows one of them."""

    kind: str
    starts: tuple[str, ...]
    rest: re.Pattern[str]


_WORD = r"[A-Za-z0-9_-]"
_PLAIN = r"[A-Za-z0-9]"
_HEX = r"[0-9a-fA-F]"

# Lines of base64 and of headers; on one line they stand apart by spaces. Where a file is shown, numbers, names and
# marks may stand in front of its lines.
_MARKS = r"(?:[ \t:|>+#*│→]|-(?!-))"
_LEAD = rf"(?:[ \t]*(?!-----)(?:(?:[\w./]|-(?!-)){{1,200}}[:-]\d{{0,7}}{_MARKS}{{0,6}}|\d{{0,7}}{_MARKS}{{1,6}}))?"
_ARMOUR = (
    rf"(?:[A-Za-z0-9+/=.\\]|[:,] ?|\r?[\r\n]{_LEAD}|-(?!-)"
    r"| (?=[A-Za-z0-9+/]{30}|[A-Za-z0-9+/]{1,64}={0,2} ?-----|-----END))*+"
)

# The first kind that fits a place wins: what is more exact stands first.
_TABLE: tuple[tuple[str, str, str], ...] = (
    ("Anthropic key", "sk-ant-", rf"{_WORD}{{20,250}}+"),
    ("OpenRouter key", "sk-or-", rf"{_WORD}{{20,250}}+"),
    ("OpenAI key", "sk-proj- sk-svcacct- sk-admin-", rf"{_WORD}{{16,250}}+"),
    ("API key", "sk-", rf"(?:[A-Za-z0-9]{{1,12}}[_-])?{_PLAIN}{{20,250}}+"),
    ("Stripe key", "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_", rf"{_PLAIN}{{16,250}}+"),
    ("Stripe webhook secret", "whsec_", r"[A-Za-z0-9+/=]{20,250}+"),
    ("AWS access key", "AKIA ASIA ABIA ACCA", rf"[A-Z0-9]{{16}}(?!{_PLAIN})"),
    ("AWS Bedrock key", "ABSK", r"[A-Za-z0-9+/]{109,300}+={0,2}"),
    ("AWS Bedrock key", "bedrock-api-key-", r"[A-Za-z0-9+/=_.-]{40,4000}+"),
    ("Google API key", "AIza", rf"{_WORD}{{35}}(?!{_WORD})"),
    ("Google OAuth token", "ya29.", rf"{_WORD}{{20,1000}}+"),
    ("Google client secret", "GOCSPX-", rf"{_WORD}{{24,60}}+"),
    ("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"{_PLAIN}{{30,255}}+"),
    ("GitHub token", "github_pat_", r"[A-Za-z0-9_]{22,255}+"),
    (
        "GitLab token",
        "glpat- gldt- glrt- glptt- glcbt- glsoat- glft- gloas- glimt- glagent- glffct- GR1348941",
        r"[A-Za-z0-9_.-]{16,255}+",
    ),
    ("Slack token", "xoxe.xoxb- xoxe.xoxp-", r"[A-Za-z0-9-]{10,255}+"),
    ("Slack token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", r"[A-Za-z0-9-]{10,255}+"),
    ("Slack webhook", "hooks.slack.com/services/", r"T[A-Z0-9]{6,14}/B[A-Z0-9]{6,14}/[A-Za-z0-9]{20,40}+"),
    ("Slack webhook", "hooks.slack.com/workflows/ hooks.slack.com/triggers/", r"[A-Za-z0-9+/]{40,80}+"),
    ("Discord webhook", "discord.com/api/webhooks/ discordapp.com/api/webhooks/", rf"\d{{15,22}}/{_WORD}{{50,90}}+"),
    ("Discord webhook", "discord.com/api/v discordapp.com/api/v", rf"\d+/webhooks/\d{{15,22}}/{_WORD}{{50,90}}+"),
    # A user's number in base64, which begins in one of these ways, a time, and a signature.
    (
        "Discord token",
        "MD MT Mj Mz ND NT Nj Nz OD OT",
        rf"[AEIMQUYcgk]{_WORD}{{19,25}}\.{_WORD}{{6,7}}\.{_WORD}{{27,110}}+",
    ),
    ("Discord token", "mfa.", rf"{_WORD}{{80,95}}(?!{_WORD})"),
    ("Telegram token", ":A", rf"{_WORD}{{34}}(?!{_WORD})"),
    ("key of a team member", "ba-team-", rf"{_WORD}{{200,2000}}+"),
    ("npm token", "npm_", rf"{_PLAIN}{{30,60}}+"),
    ("PyPI token", "pypi-", rf"{_WORD}{{50,400}}+"),
    ("Hugging Face token", "hf_ api_org_", rf"{_PLAIN}{{30,60}}+"),
    ("1Password token", "ops_eyJ", r"[A-Za-z0-9+/]{200,2000}+={0,3}"),
    ("Adobe secret", "p8e-", rf"{_PLAIN}{{32}}(?!{_PLAIN})"),
    ("Airtable token", "pat", rf"{_PLAIN}{{14}}\.[0-9a-f]{{64}}(?!{_PLAIN})"),
    ("Artifactory token", "AKCp", rf"{_PLAIN}{{60,80}}+"),
    ("Artifactory token", "cmVmdGtu", rf"{_PLAIN}{{50,60}}+"),
    ("Brevo key", "xkeysib-", r"[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    ("Clojars token", "CLOJARS_", rf"{_PLAIN}{{60}}(?!{_PLAIN})"),
    ("Dynatrace token", "dt0c01. dt0s01. dt0s02.", rf"{_PLAIN}{{24}}\.{_PLAIN}{{64}}"),
    ("EasyPost key", "EZAK EZTK", rf"{_PLAIN}{{54}}(?!{_PLAIN})"),
    ("Fly.io token", "fo1_", rf"{_WORD}{{43}}(?!{_WORD})"),
    ("Fly.io token", "fm1a_ fm1r_ fm2_", r"[A-Za-z0-9+/]{80,4000}+={0,3}"),
    ("Frame.io token", "fio-u-", rf"{_WORD}{{64}}(?!{_WORD})"),
    ("OpenShift token", "sha256~", rf"{_WORD}{{43}}(?!{_WORD})"),
    ("Prefect key", "pnu_", rf"{_PLAIN}{{36}}(?!{_PLAIN})"),
    ("Pulumi token", "pul-", r"[0-9a-f]{40}(?![0-9a-f])"),
    ("ReadMe key", "rdme_", r"[0-9a-z]{70}"),
    ("RubyGems key", "rubygems_", r"[0-9a-f]{48}"),
    ("Sonar token", "squ_ sqp_ sqa_", r"[0-9a-f]{40}(?![0-9a-f])"),
    ("Sourcegraph token", "sgp_", rf"(?:{_HEX}{{16}}_|local_)?{_HEX}{{40}}(?!{_PLAIN})"),
    ("Tailscale key", "tskey-", rf"[a-z]{{2,12}}-{_PLAIN}{{8,24}}(?:CNTRL)?-{_PLAIN}{{20,60}}+"),
    ("Terraform token", ".atlasv1.", rf"{_WORD}{{60,70}}(?!{_WORD})"),
    ("Typeform token", "tfp_", r"[A-Za-z0-9_.=-]{40,80}+"),
    ("Twilio key", "SK", rf"[0-9a-f]{{32}}(?!{_PLAIN})"),
    ("SendGrid key", "SG.", rf"{_WORD}{{16,32}}\.{_WORD}{{16,64}}+"),
    ("Mailgun key", "key-", rf"[0-9a-f]{{32}}(?!{_PLAIN})"),
    ("DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", r"[0-9a-f]{40,64}+"),
    ("Groq key", "gsk_", rf"{_PLAIN}{{30,80}}+"),
    ("xAI key", "xai-", rf"{_WORD}{{40,120}}+"),
    ("NVIDIA key", "nvapi-", rf"{_WORD}{{40,120}}+"),
    ("Replicate token", "r8_", rf"{_PLAIN}{{30,60}}+"),
    ("Perplexity key", "pplx-", rf"{_PLAIN}{{32,80}}+"),
    ("Tavily key", "tvly-", rf"{_WORD}{{20,80}}+"),
    ("Databricks token", "dapi", rf"[0-9a-f]{{32}}(?:-\d)?(?!{_PLAIN})"),
    ("Vault token", "hvs. hvb. hvr.", rf"{_WORD}{{24,300}}+"),
    ("Doppler token", "dp.pt. dp.st. dp.ct.", r"[A-Za-z0-9_.-]{30,80}+"),
    ("Postman key", "PMAK-", rf"{_HEX}{{20,30}}-{_HEX}{{30,40}}+"),
    ("New Relic key", "NRAK-", r"[A-Z0-9]{24,32}+"),
    ("age key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{50,64}+"),
    ("Docker token", "dckr_pat_ dckr_oat_", rf"{_WORD}{{20,60}}+"),
    ("Sentry token", "sntrys_ sntryu_", r"[A-Za-z0-9_+/=]{40,400}+"),
    ("Grafana token", "glsa_ glc_", r"[A-Za-z0-9_+/=]{30,400}+"),
    ("Figma token", "figd_", rf"{_WORD}{{30,60}}+"),
    ("Supabase key", "sbp_ sb_secret_", rf"{_WORD}{{20,80}}+"),
    ("Atlassian token", "ATATT3", r"[A-Za-z0-9_=-]{100,300}+"),
    ("Heroku key", "HRKU-", rf"{_WORD}{{30,80}}+"),
    ("Linear key", "lin_api_", rf"{_PLAIN}{{32,60}}+"),
    ("Notion token", "ntn_", rf"{_PLAIN}{{40,60}}+"),
    ("Shopify token", "shpat_ shpss_ shpca_ shppa_", rf"{_HEX}{{32}}(?!{_PLAIN})"),
    ("Square secret", "sq0csp- sq0atp-", rf"{_WORD}{{22,60}}+"),
    ("PlanetScale token", "pscale_tkn_ pscale_pw_ pscale_oauth_", rf"{_WORD}{{30,80}}+"),
    ("JSON web token", "eyJ", rf"{_WORD}{{8,4000}}+\.eyJ{_WORD}{{5,8000}}+\.{_WORD}{{8,2000}}+"),
    ("Azure storage key", "AccountKey= SharedAccessKey=", r"[A-Za-z0-9+/]{40,90}+={1,2}"),
    ("Azure signature", "sig=", r"[A-Za-z0-9%+/=]{40,120}+"),
    ("AWS signature", "X-Amz-Signature=", rf"{_HEX}{{64}}"),
    ("PuTTY key", "Private-Lines:", r" \d+(?:\r?\n[^\n]{0,30}?[A-Za-z0-9+/=]{20,64})++"),
    (
        "encoded private key",
        "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRV LS0tLS1CRUdJTiBQUklWQVRFIEtFW LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFW"
        " LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUgS0 LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFURSBLRV"
        " LS0tLS1CRUdJTiBEU0EgUFJJVkFURSBLRV LS0tLS1CRUdJTiBQR1AgUFJJVkFURSBLRV",
        r"[A-Za-z0-9+/]{12,}+(?:\s{1,40}[A-Za-z0-9+/]{40,}+)*+[A-Za-z0-9+/\s]{0,80}?={0,2}",
    ),
    ("private key", "-----BEGIN ", rf"[A-Z0-9 ]{{0,30}}PRIVATE KEY(?: BLOCK)?-----{_ARMOUR}"),
)


@cache
def shapes() -> tuple[Shape, ...]:
    """All of them, in the order in which they win."""
    return tuple(
        Shape(kind, tuple(starts.split(" ")) if kind != "private key" else (starts,), regex(rest))
        for kind, starts, rest in _TABLE
    )
