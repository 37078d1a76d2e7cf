"""What the name of an environment variable tells: whether it holds a key or a secret, or steers how programs start."""

from __future__ import annotations

import re

from ba_tui.core.text.patterns import regex

_KEYS = regex(
    r"(?:ANTHROPIC|CLAUDE\w*|OPENAI|AZURE_OPENAI|AZURE_AI|GEMINI|MISTRAL|DEEPSEEK|DASHSCOPE|QWEN|ZHIPU\w*|ZAI|GLM|BIGMODEL"
    r"|MOONSHOT|KIMI|MINIMAX|GROQ|XAI|OPENROUTER|TOGETHER\w*|FIREWORKS|COHERE|CO|PERPLEXITY|PPLX|CEREBRAS|REPLICATE"
    r"|HUGGINGFACE\w*|HF|VOYAGE|AI21|SILICONFLOW|VOLC\w*|ARK|LITELLM|OLLAMA|BA)"
    r"(?:_\w+)?_(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD)(?:_\w+)?"
    r"|(?:GOOGLE|VERTEX|NVIDIA|AZURE)(?:_\w+)?_API_?KEY(?:_\w+)?"
    # Addresses of servers hold passwords.
    r"|AWS_BEARER_TOKEN_BEDROCK|BA_\w+_URL",
    re.IGNORECASE,
)
_SECRETS = regex(
    r"(?:\w+_)?(?:API_?KEY|ACCESS_?KEY|SECRET_?KEY|SIGNING_?KEY|ENCRYPTION_?KEY|PRIVATE_?KEY|SECRET|PASSPHRASE"
    r"|CREDENTIALS_JSON)(?:_ID|_\d+)?"
    r"|\w*(?:TOKEN|PASSWORD|PASSWD|_PAT)(?:_\d+)?"
    r"|(?:AWS|ALIYUN|TENCENTCLOUD|ALICLOUD|ALIBABA_CLOUD|HUAWEICLOUD)_\w*(?:KEY|TOKEN|SECRET)\w*",
    re.IGNORECASE,
)
_STEERING = regex(
    r"BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PROMPT_COMMAND|PS4|BASH_FUNC_.*|CDPATH|GLOBIGNORE|POSIXLY_CORRECT"
    r"|GREP_OPTIONS|RIPGREP_CONFIG_PATH"
)
_LAUNCHING = regex(
    # Where programs are found, what they load first, and where they send what they know.
    r"PATH|HOME|SHELL|USER|LOGNAME|PWD|OLDPWD|IFS|TMPDIR|TEMP|TMP|EDITOR|VISUAL|PAGER|BROWSER|MANPAGER|LESSOPEN|LESSCLOSE"
    r"|CLASSPATH|(?:_?JAVA|JDK|_JAVA)\w*OPTIONS|CC|CXX|CPP|LD|AR|AS|NM|RANLIB|FC|[A-Z]*FLAGS|RUSTC\w*|GO[A-Z]+|CGO_\w+"
    r"|(?:LD|DYLD|GIT|SSH|PERL5?|RUBY|PIP|UV|NPM_CONFIG|YARN|BUNDLE|GEM|CARGO|COREPACK|DOCKER|NIX|XDG)_?\w*"
    r"|PYTHON(?:PATH|HOME|STARTUP|BREAKPOINT|USERBASE|EXECUTABLE|INSPECT|WARNINGS|PYCACHEPREFIX|PLATLIBDIR|CASEOK)"
    r"|NODE_(?:OPTIONS|PATH|EXTRA_CA_CERTS|REPL_EXTERNAL_MODULE|TLS_REJECT_UNAUTHORIZED|V8_COVERAGE)|\w*_PROXY"
    r"|TERM\w*|\w*(?:PRELOAD|ASKPASS)\w*|BA_\w*|ZDOTDIR|FPATH|INPUTRC|MAKEFLAGS|MFLAGS|MAKEFILES|OPENSSL_\w+|SSL_\w+"
    r"|CURL_\w+|REQUESTS_\w+|AWS_\w+|KUBECONFIG|GOOGLE_\w+|AZURE_\w+",
    re.IGNORECASE,
)


_LEADING = regex(
    r"\w*_(?:URL|URI|HOST|HOSTS|HOSTNAME|ENDPOINT|ADDR|ADDRESS|DSN|SERVER|SERVERS|REGISTRY|MIRROR|INDEX|REMOTE|PORT|BROKER)",
    re.IGNORECASE,
)


def leads(name: str) -> bool:
    """Whether ``name`` may say where programs connect to."""
    return bool(_LEADING.fullmatch(name))


def holds_key(name: str) -> bool:
    """Whether the variable ``name`` holds a key, a token or a password."""
    return bool(_KEYS.fullmatch(name) or _SECRETS.fullmatch(name))


def steers(name: str) -> bool:
    """Whether ``name`` makes bash run something first, or read words in another way than they were judged."""
    return bool(_STEERING.fullmatch(name))


def starts(name: str) -> bool:
    """Whether ``name`` may change which programs start, what they load first, or where they send what they know."""
    return steers(name) or bool(_LAUNCHING.fullmatch(name))
