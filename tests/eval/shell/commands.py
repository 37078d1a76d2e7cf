"""Makes shell commands over hostile names: calls of the known readers, redirections, and what stands around them.

All choices come from one ``Random``, so that a seed or hypothesis decides them.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from random import Random

from ba_tui.permissions.shell.known_commands import FILE, FLAG, MAYBE, VALUE, CommandEntry, known
from tests.eval.shell.world import AWAY, FOLDERS, LINKS, PLAIN

NAMES = (
    *LINKS, *AWAY, *PLAIN, *FOLDERS, ".env", "id_rsa", "twin", "conf/.env.local", "loop", "new-file", "err-1", "PWNED",
    "d-out/private.txt", "d out/private.txt", "d-out/deep/a.txt", "d-home/.ssh/id_ed25519", "d-home/notes.txt",
    "x://../.env", "http://../.env", "file://../.env", "file:../.env", "dir/../.env", "../work/.env", "src/../e-n",
    "../outside/private.txt", "./-e", "./-", "~/notes.txt", "~/.ssh/id_ed25519", "/etc/passwd", "/dev/fd/0",
    "/dev/stdin", "/proc/self/environ", "/proc/self/cwd/.env", "/proc/self/root/etc/passwd", "bare", "nested", "common",
    "tree", "evil", "HEAD:.env", ":.env", "HEAD~1", "main", "@{u}", ".git/config", ".", "..", "src", "src/", "d-out",
)  # fmt: skip
TEXTS = (
    "x", "KEY", ".", "main", "-o", "--output=PWNED", "-e", "s/a/b/", "p", "1,3p", "w PWNED", "1e touch PWNED",
    "s/a/b/w PWNED", "r .env", "{print}", "NR>1{print $1}", "{print > \"PWNED\"}", "BEGIN{system(\"touch PWNED\")}",
    "BEGIN{while((getline l < \".env\")>0)print l}", "BEGIN{print ENVIRON[\"API_KEY\"]}", "env", ".name",
    "$ENV.API_KEY",
    "%s\\n", "%n", "-v", "+%F", "1", "10", "PATH", "API_KEY", "a[$(touch PWNED)]", "!touch PWNED",
    "ext::sh -c touch% PWNED",
    "*.py", "\\.env", "@.env", "-f.env", "--pre=./evil", "fixed", "json", "never", "name", "size",
)  # fmt: skip
PATTERNS = (
    "*", "e*", ".e*", ".[e]nv", ".[[:alpha:]]nv", ".e?v", "*.txt", "[a-z]*", "o*", "*/link", "src/*", "d-*/*", "./*",
    "{a,b}.txt", ".{env,x}", ".e{n,m}v", "{e-n,x}", "-*", "?", "??", "*n", ".*", "*/*/*", "@(.env)", "**", ".e[!m]v",
    ".e[\\n]v", "{a..c}.txt", "id_{r,d}sa", "~/*", "../*/private.txt",
)  # fmt: skip
VARIABLES = ("$API_KEY", "${API_KEY}", "$HOME", "$x", "${x:-.env}", "$1", "$@", "$PATH", "$0", "$PWD/.env", "$OLDPWD")
CODE = (
    "touch PWNED",
    "rm a.txt",
    "echo x > PWNED",
    "cat .env",
    "cat < e-n",
    "./evil",
    "cp .env copy",
    "tee PWNED < a.txt",
)


def command(random: Random) -> str:
    """One command, with up to three things around it."""
    text = random.choice((gentle, gentle, gentle, call, call, redirected, git, pipeline, code, listed))(random)
    for _ in range(random.choice((0, 0, 0, 1, 1, 2, 3))):
        text = random.choice(_AROUND)(random, text)
    return text


def call(random: Random) -> str:
    """A program that is known, with some of its options and words of the kinds that it takes."""
    programs = known().programs
    plain = sorted(getattr(known(), "plain", ()) or ["cat", "grep", "ls", "sort", "head", "sed", "find"])
    name = random.choice(plain) if random.random() < 0.6 else random.choice(sorted(programs))
    if name not in programs:
        name = "cat"
    return _call(random, name, programs[name])


def gentle(random: Random) -> str:
    """A call that may well run unasked: options that are known, mostly files that anybody may read."""
    about = known()
    name = random.choice(sorted(about.plain)) if random.random() < 0.7 else random.choice(sorted(about.programs))
    entry = about.programs[name]
    words = [name]
    if entry.commands and random.random() < 0.7:
        pattern = random.choice(sorted(entry.commands))
        words += [random.choice(part.split(",")).replace("*", "x") for part in pattern]
        entry = entry.commands[pattern]
    options = sorted(entry.options)
    for _ in range(random.choice((0, 1, 1, 2, 3)) if options else 0):
        option = random.choice(options)
        kind = entry.options[option]
        if kind in (FLAG, MAYBE):
            words.append(option if kind == FLAG else f"{option}{random.choice(('', '=1', '1'))}")
        else:
            words += [option, _mild(random) if kind != VALUE else random.choice(("1", "2", "x", "a.txt", ",", "KEY"))]
    if len(words) > 2 and random.random() < 0.3:
        # Options in one word, as people write them.
        short = [word[1] for word in words if len(word) == 2 and word[0] == "-" and entry.options.get(word) == FLAG]
        words = [word for word in words if not (len(word) == 2 and word[1] in short)] + (
            [f"-{''.join(short)}"] if short else []
        )
    if entry.needs:
        words.append(random.choice(sorted(entry.needs)))
    for kind in (entry.operands or ("files",))[:2]:
        words += [
            _mild(random) if "file" in kind else random.choice(_SCRIPTS) for _ in range(random.choice((0, 1, 1, 2)))
        ]
    return " ".join(words)


_SCRIPTS = (
    "KEY",
    ".",
    "p",
    "'1,2p'",
    "s/a/b/",
    "'{print $1}'",
    "'NR>1{print $1}'",
    ".name",
    "1",
    "+%F",
    "-- x",
    "'*.txt'",
)


def _mild(random: Random) -> str:
    if random.random() < 0.25:
        return _file(random)
    return random.choice(
        ("a.txt", "b.txt", "README.md", "src/a.py", "data.csv", "'a b.txt'", "k=v", ".", "src", "*.txt", "src/*.py")
    )


def _call(random: Random, name: str, entry: CommandEntry) -> str:
    words = [name]
    while entry.commands and random.random() < 0.9:
        pattern = random.choice(sorted(entry.commands))
        words += [random.choice(part.split(",")).replace("*", "x") for part in pattern]
        entry = entry.commands[pattern]
    for _ in range(random.choice((0, 0, 1, 1, 2, 3))):
        words += _option(random, entry)
    if entry.needs and random.random() < 0.8:
        words.append(random.choice(sorted(entry.needs)))
    kinds = list(entry.operands) or ["files"]
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        kind = kinds[0] if len(kinds) == 1 or kinds[0].endswith("s") else kinds.pop(0)
        words.append(_file(random) if kind.startswith("file") or random.random() < 0.3 else _text(random))
    if random.random() < 0.15:
        random.shuffle(words[1:])
    return " ".join(words)


def _option(random: Random, entry: CommandEntry) -> list[str]:
    choice = random.random()
    if choice < 0.15 and entry.never:
        name = random.choice(sorted(entry.never))
        return [_short(random, name), _text(random)]
    if choice < 0.2:
        return [random.choice(("-x", "-o", "--output", "-i", "-f", "-e", "--exec", "-w", "-T", "-z", "--pre"))]
    if not entry.options:
        return []
    name = random.choice(sorted(entry.options))
    kind = entry.options[name]
    if kind == FLAG:
        return [_short(random, name)]
    value = _file(random) if kind == FILE or random.random() < 0.3 else _text(random)
    if kind == MAYBE:
        return [f"{name}={value}" if name.startswith("--") else f"{name}{value}"]
    return [f"{name}={value}"] if name.startswith("--") and random.random() < 0.5 else [name, value]


def _short(random: Random, name: str) -> str:
    """``name``, now and then abbreviated or in a cluster."""
    if name.startswith("--") and len(name) > 5 and random.random() < 0.3:
        return name[: random.randint(4, len(name))]
    if len(name) == 2 and random.random() < 0.2:
        return f"-{random.choice('nqvsruiz')}{name[1]}"
    return name


def _file(random: Random) -> str:
    choice = random.random()
    if choice < 0.12:
        return random.choice(PATTERNS)
    if choice < 0.18:
        return random.choice(VARIABLES)
    if choice < 0.22:
        return random.choice(("$(echo .env)", "`echo e-n`", "$(ls)", "<(cat .env)", "<(cat a.txt)", '"$(cat names)"'))
    return quoted(random, random.choice(NAMES))


def _text(random: Random) -> str:
    if random.random() < 0.1:
        return random.choice(VARIABLES)
    return quoted(random, random.choice(TEXTS))


def quoted(random: Random, text: str) -> str:
    """``text`` in one of the ways to write it."""
    ways: Sequence[Callable[[str], str]] = (shlex.quote, shlex.quote, _double, _escaped, _ansi, _split)
    if text.startswith("~") and random.random() < 0.5:
        return text
    return random.choice(ways)(text)


def _double(text: str) -> str:
    return '"' + "".join(f"\\{char}" if char in '"$`\\' else char for char in text) + '"'


def _escaped(text: str) -> str:
    return "".join(
        char if char.isalnum() or char in "./_-" else "$'\\n'" if char == "\n" else f"\\{char}" for char in text
    )


def _ansi(text: str) -> str:
    return "$'" + "".join(char if char.isalnum() or ord(char) > 126 else f"\\x{ord(char):02x}" for char in text) + "'"


def _split(text: str) -> str:
    half = len(text) // 2
    return "".join(shlex.quote(part) for part in (text[:half], text[half:]) if part) or "''"


def redirected(random: Random) -> str:
    """A call whose output or input goes to or comes from somewhere."""
    operators = (">", ">>", "2>", "&>", ">|", "<", "<>", "1<>", "3>", ">&", "0<", "2>>", "< ")
    target = random.choice(
        (_file(random), "/dev/null", "new-file", "err-1", "/dev/stdout", "/dev/fd/3", "/dev/tcp/a/1")
    )
    more = random.choice(("", f" < {_file(random)}", f" 3< {_file(random)}", " 2>&1", f" 1< {_file(random)}"))
    body = random.choice(("echo x", "ls", "cat", call(random), ":", ""))
    return f"{body}{more} {random.choice(operators)} {target}"


def git(random: Random) -> str:
    """A call of git, from somewhere, with words that name files, commits and settings."""
    before = ("-C bare", "-C common", "-C nested", "-C src -C ..", "-C src -C ../nested", "-C tree", "--git-dir=bare",
              "--git-dir bare", "--work-tree=..", "-c core.fsmonitor=./evil", "-C 'd-out'", "--no-pager", "-C src",
              "-p", "--exec-path=.", "--bare", "-C bare -C ../common", "-C x: -C ../bare")  # fmt: skip
    words = [random.choice(before) for _ in range(random.choice((0, 0, 1, 1, 2)))]
    reading = ("status", "diff", "log -p", "show", "log -1", "blame a.txt", "grep KEY", "ls-files", "cat-file -p",
    "branch",
               "stash list", "tag -l", "describe --dirty", "rev-parse HEAD", "diff --stat", "show HEAD:a.txt",
               "remote -v",
               "archive HEAD", "format-patch -1", "hash-object a.txt", "var -l", "config -l",
               "diff --no-index")  # fmt: skip
    more = ("--ext-diff", "--textconv", "--output=PWNED", "--outp=PWNED", "-O./evil", "--open-files=./evil", "--stdin",
            "--show-signature", "--filters", "-- e-n", "HEAD", "a.txt", "--cached", "--submodule=diff")  # fmt: skip
    tail = [random.choice((*more, _file(random))) for _ in range(random.choice((0, 0, 1, 2)))]
    place = random.choice(("", "", "", "cd bare && ", "cd common; ", "cd nested && ", "cd src && ", "cd tree && "))
    return f"{place}git {' '.join([*words, random.choice(reading), *tail])}"


def pipeline(random: Random) -> str:
    """What lists names, and what reads them."""
    first = ("find . -name '*.txt'", "find .", "ls", "git ls-files", "echo .env", "cat list.txt", "find . -print0",
             "find . -type f -name '*.py'", "printf '%s\\n' e-n", "find . -type l", "rg --files")  # fmt: skip
    last = ("xargs cat", "xargs -0 cat", "xargs -n1 head -3", "xargs -I{} cat {}", "xargs grep -n KEY", "sh", "bash",
            'while read -r f; do cat "$f"; done', "while read f; do cat $f; done",
            'while IFS= read -r f; do wc -l "$f"; done',
            "xargs touch", "cat", "xargs -a list.txt cat", "tee PWNED", "xargs", "head -3",
            "xargs sh -c 'cat $0'")  # fmt: skip
    return f"{random.choice(first)} | {random.choice(last)}"


def listed(random: Random) -> str:
    """Readers that get the names which other commands print, variables of the environment, and dry runs."""
    names = ("ls", "ls -t", "ls *.txt", "ls src/*", "ls -a", "ls d-out", "ls ..", "ls /etc", "git ls-files",
             "rg --files", "git diff --name-only", "git ls-files ..", "git -C ../outside ls-files", "grep -l KEY *",
             "grep -rl KEY .", "git grep -l KEY", "git rev-parse HEAD", "git rev-parse /etc/passwd", "which sh",
             "git merge-base HEAD main", "git describe --always", "grep -l --label=.env x -", "find . -type f",
             "cat list.txt", "echo .env")  # fmt: skip
    passed = ("", "", " | head -3", " | sort -r", " | grep -v b", " | tail -1", " | sed 's/^/./'", " | tr a e",
              " | xargs dirname", " | head -1 list.txt")  # fmt: skip
    word = random.choice(("$({n})", "$({n})", '"$({n})"', "`{n}`", "./$({n})", "$({n}).bak", "../$({n})", "-$({n})"))
    given = word.format(n=random.choice(names) + random.choice(passed))
    ways = (
        "cat {g}", "sort {g}", "head -1 {g}", "grep -n KEY {g}", "sed -n p {g}", "wc -l {g}", "uniq {g}", "rg KEY {g}",
        "git show {g}", "git diff {g}", "tree {g}", "x={g}; cat $x", "x={g}; sort \"$x\"",
        "for f in {g}; do cat $f; done",
        "find {g}", "cat < {g}", "cat {g} > new-file", "tee {g}", "xargs cat <<< {g}", "cat -- {g}", "git {g}", "{g}",
        "env | grep PATH", "env | cut -d= -f1", "env >&2 | grep PATH", "{{ env; }} | grep PATH", "env | grep KEY",
        "env | grep -f PATH", "bash -c 'env >&2' | grep PATH", "make -n", "make -pn | head", "make -n -f evil",
        "make -n all; make", "du -sh * {g}", "ls -la / ~ {g}", "yes | head -2", "file *", "ls [a-e]* .[a-z]*",
    )  # fmt: skip
    place = random.choice(("", "cd src && ", "cd conf && ", "cd json; "))
    return f"{place}{random.choice(ways).format(g=given)}"


def code(random: Random) -> str:
    """Commands hidden in other commands."""
    inner = random.choice(CODE)
    ways = (
        "bash -c {q}", "sh -c {q}", "eval {q}", "trap {q} EXIT", "env -S {q}", "find . -maxdepth 0 -exec sh -c {q} ';'",
        "timeout 5 sh -c {q}", "echo x | xargs -I@ sh -c {q}", "f() {{ {r}; }}; f", "coproc {r}; wait", "cat <({r})",
        "ls > >({r})", "x=$({r}); echo $x", "x={q}; $x", "x={q}; eval \"$x\"", "alias ls={q}; ls", "bash <<< {q}",
        "bash <<'E'\n{r}\nE", "cat <<E\n$({r})\nE", "echo ${{x:-$({r})}}", "echo \"`{r}`\"", "(( a[$({r})] ))",
        "[[ -v 'a[$({r})]' ]]", "test -v 'a[$({r})]'", "printf -v 'a[$({r})]' x", "read 'a[$({r})]' <<< 1", "! {r}",
        "declare 'a[$({r})]=1'", "x='a[$({r})]'; echo $((x))", "x='$({r})'; echo ${{x@P}}", "PS4='$({r})'; set -x; ls",
        "time -p {r}", "command {r}", "builtin eval {q}", "exec {r}", "nice {r}", "if {r}; then :; fi", "{r} & wait",
        "case x in x) {r};; esac", "for i in 1; do {r}; done", "while {r}; do break; done", "printf 'x%n' PATH; ls",
        "bash -n -c {q}", "bash -n +n evil", "set -- {q}; \"$@\"", "mapfile -C {q} -c 1 x < a.txt", "PATH=.; ls",
        "hash -p ./evil ls; ls", "enable -f ./evil x", "while :; do bash; break; done < <(echo {q})",
        "exec 3< <(echo {q}); bash <&3", "echo {q} | bash", "ls | while read x; do {r}; done", "source evil",
        ". ./evil",
        "declare -n r=PATH; r=.; ls", "readonly PATH=.; ls", "BASH_ENV=evil bash -c ls", "cd . && {r}",
        "pushd src; {r}",
        "CDPATH=..; cd outside && cat private.txt", "set -P; cd d-out/..; cat outside/private.txt",
        "IFS=x; y=caxt; $y .env",
    )  # fmt: skip
    return random.choice(ways).format(q=shlex.quote(inner), r=inner)


_LOOPS = (
    'for f in {w}; do cat "$f"; done', "for f in {w}; do cat $f; done", "for f in {w}; do wc -l \"src/$f\"; done",
    "for f in {w}; do {c}; done", 'for f in {w}; do cat ".$f"; done', 'for f in {w}; do cd "$f"; {c}; done',
    "x={w}; cat $x", 'x={w}; cat "$x"', "x={w}; y=$x; cat ${{y}}", "read x <<< {w}; cat \"$x\"", "cat <<< {w}",
    "select f in {w}; do {c}; break; done", "printf '%s' {w}",
)  # fmt: skip


def _loop(random: Random, text: str) -> str:
    words = " ".join(_file(random) for _ in range(random.choice((1, 1, 2))))
    return random.choice(_LOOPS).format(w=words, c=text)


_AROUND: Sequence[Callable[[Random, str], str]] = (
    lambda random, text: f"cd {_file(random)} && {text}",
    lambda random, text: f"cd {_file(random)}; {text}",
    lambda random, text: f"( {text} )",
    lambda random, text: f"{{ {text}; }}",
    lambda random, text: f"{text} | {call(random)}",
    lambda random, text: f"{call(random)} | {text}",
    lambda random, text: f"{text} && {call(random)}",
    lambda random, text: f"{text}; {redirected(random)}",
    lambda random, text: f"echo $({text})",
    lambda random, text: f"cat <({text})",
    lambda random, text: f"if {text}; then {call(random)}; fi",
    lambda random, text: f"while {text}; do break; done",
    lambda random, text: f"bash -c {shlex.quote(text)}",
    lambda random, text: f"LC_ALL=C {text}" if text[:1].isalpha() else text,
    lambda random, text: f"{random.choice(('time', 'timeout 5', 'nice', 'command', 'env A=1', 'nohup', '!'))} {text}",
    lambda random, text: f"{{ {text}; }} {random.choice(('<', '>', '2>', '>>'))} {_file(random)}",
    _loop,
    lambda random, text: f"f() {{ {text}; }}; f",
    lambda random, text: f"{text} &\nwait",
    lambda random, text: f"cat <<E\n$({text})\nE",
)
