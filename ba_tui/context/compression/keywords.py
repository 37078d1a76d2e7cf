"""Words and shapes of sentences and lines that are worth keeping, in English and Chinese, and how unusual they are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import pairwise
from math import log2
from typing import NamedTuple

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

_STANDING = regex(r"""(?ix)
    \b(?:always|never|from\ now\ on|in\ future|going\ forward|do(?:\ not|n[’']t)|must(?:\ not|n[’']t)?|make\ sure
    |remember|keep\ in\ mind|prefer|please\ (?:use|keep|write|answer|reply|avoid|do\ not|don[’']t)|only\ (?:use|ever)
    |under\ no\ circumstances|every\ time|whenever|no\ matter\ what|at\ all\ times|without\ (?:asking|my)
    |I(?:[’']m|\ am)|my\ (?:name|time\ ?zone|team|boss|manager|company|role)|call\ me|we\ (?:always|never|only)
    |not\ allowed|off\ limits|leave\ .{1,40}\ alone|stick\ to|hands\ off|has\ to\ stay|should\ (?:always|never|not))\b
    |请(?:始终|总是|一直|务必|用|使用|不要|别|记住|以后|先)|以后|今后|从现在起|永远|务必|切勿|不要|不许|不得|别再|必须|一律
    |始终|记住|我(?:是|叫|的名字)|每次|只(?:能|用|要)|禁止|统一用|凡是
""")
_DECISION = regex(r"""(?ix)
    \b(?:decid\w*|decision|chose\w*|choos\w*|opt(?:ed|ing)?\ for|(?:go|going|went)\ (?:with|for)|settled?\ on
    |instead\ of|rather\ than|because|since\ the|so\ that|the\ reason|therefore|trade-?off|agreed|picked
    |switch(?:ed|ing)?\ to|drop(?:ped)?\ the\ idea|rejected|ruled\ out|in\ favou?r\ of|why)\b
    |决定|选(?:择|用|定)|采用|改用|而不是|因为|由于|原因|所以|因此|放弃|否决|商定|定为|换成|理由
""")
_TODO = regex(r"""(?ix)
    \b(?:to-?do|next\ step|still\ (?:to|need|open|missing)|remain(?:s|ing)|left\ to\ do|not\ yet|later|follow-?up
    |open\ question|waiting\ (?:for|on)|blocked|before\ (?:we|the)\ release|deadline|due
    |by\ (?:Monday|Tuesday|Wednesday|Thursday|Friday))\b
    |待办|还(?:要|需|没)|未完成|接下来|下一步|剩下|尚未|稍后|等待|截止|之前完成
""")
_TROUBLE = regex(r"""(?ix)
    \b(?:\w*error|\w*exception|fail(?:ed|s|ure|ing)?|fatal|traceback|panic|denied|refused|timed?\ out|timeout|broken
    |crash\w*|cannot|can[’']t|unable|not\ found|missing|invalid|conflict\w*|warning)\b
    |错误|失败|异常|报错|无法|超时|拒绝|崩溃|不存在
""")
_OUTCOME = regex(r"""(?ix)
    \b(?:total|result\w*|found|turns?\ out|root\ cause|caused?\ by|conclu\w+|in\ short|summary|confirmed|measured
    |equals?|answer|mean|median|average|rate|grew|rose|fell|peak\w*|highest|lowest|owner|owned|responsible|contact|version
    |done|fixed|finished|works|passed|deployed|released|renamed|moved|called|named|key\ (?:fact|point|finding))\b
    |结论|结果|总(?:计|共|额)|合计|平均|发现|原来|根本原因|已(?:完成|修复|部署|改)|最高|最低|负责|版本|增长|下降|占比|联系
""")
_FIGURE = regex(r"""(?x)
    [$€£¥\d](?:(?<=[$€£¥])\ ?\d|(?<=\d)(?<![\d.,].)[\d.,\ ]*+(?:
    %|‰|[kKMGT]i?B\b|[kMG]?Hz\b|ms\b|µs\b|s\b|min\b|h\b|kg\b|g\b|km\b|m²|°C
    |px\b|x\b
    |(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|rows?|lines?|files?|tokens?|users?|orders?|requests?
    |percent|points?|times|million|billion|thousand|EUR|USD|GBP|CNY|RMB|tons?|units?|pods?|nodes?|replicas?|retries
    |items?)\b
    |[万亿千百]?(?:元|个|条|行|人|次|天|年|月|小时|分钟|秒|台|件|吨|公里|米|倍|名|份|户|家|笔|页)))
""")
_DATE = regex(r"""(?x)
    \b\d{4}-\d{2}(?:-\d{2})?\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b|\b\d{1,2}:\d{2}\b
    |\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?\ \d{1,4}\b
    |\b\d{1,2}\.?\ (?:January|February|March|April|May|June|July|August|September|October|November|December)\b
    |\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b|\bQ[1-4]\b
    |\d{1,4}\ ?年|\d{1,2}\ ?月\ ?\d{1,2}|[周星期]{1,2}[一二三四五六日天]
""")
_PATH = regex(r"""(?x)
    https?://\S+|(?:[\w.~-]+/|/)[\w.-]+|\b[\w-]+\.(?:[a-z]{1,5}\d?|[A-Z]{2,4})\b|@[\w-]+\.\w+|\b[A-Z]\w*-\d+\b
""")
_NAME = regex(r"""(?x)
    (?<=[a-z,:(]\ )[A-Z][a-zà-ÿ’'-]+\ [A-Z]|\b(?:Mr|Mrs|Ms|Dr|Prof)\.?\ [A-Z]
    |\b(?:named|called|by|from|with|ask|tell|to|contact|owner(?:\ is)?|is)\ [A-Z][a-zà-ÿ]+\b
    |[\u4e00-\u9fff]{1,4}(?:先生|女士|老师|经理|总监|工程师|主任|公司|部门|团队)
    |(?:叫|姓|负责人|联系人|同事|客户|供应商)[\u4e00-\u9fff：:]{2,5}|[“"`'「《][^“”"`'」》]{2,40}[”"`'」》]
""")
_BAD = regex(r"rror|ERROR|raceback|FAIL|ailed|atal|anic|xception|enied|refused|timeout|CRITICAL|错误|失败|异常|超时")
_TELLING = regex(
    r"otal|ean|edian|assed|esult|rows|ersion|arning|WARN|p95|p99|score|rate|ummary|owner|TODO|FIXME|note|NOTE"
    r"|共|合计|总|平均|结果|注意"
)
_CODE = (
    *("def ", "class ", "import ", "from ", "return ", "raise ", "except", "if ", "for ", "elif ", "else", "try:"),
    *("with ", "const ", "let ", "var ", "func ", "#include", "@", "}", ")", "]", "/*", "*", "//"),
)
_ENDS = ("{", ";", "(", "):", ",", "->")
_RAISED = regex(r"\w(?:Error|Exception)\b|\b(?:raise|throw|panic|catch)\b")
RAISING = 5.0
_FAULT = regex(
    r"\s*(?:E  +|[\w.]*(?:Error|Exception)\b|(?:npm )?ERR!?|error\b|fatal\b|panic\b|FAILED\b|[-*] [A-Z]\d{3} )",
    re.IGNORECASE,
)
FAULT = 3.0
"""Added for a line that begins with the name of an error."""
_TICKET = regex(r"[A-Z](?<!\w.)[A-Z]{1,7}-\d{2,}\b")
TICKET = 1.5
_FILE = regex(r"/(?<=[\w.-]/)[\w.-]+\w")
_GUTTER = regex(r"\s*\d+[:|\t→]\s*")
_NUMBER = regex(r"(?<!\d)\d[\d,]*(?:\d{2}|\.\d)")
"""Three digits, or a fraction."""
FIGURES = 8.0
"""The most that further figures add to a sentence; each adds as much as the first."""
_DIGITS = str.maketrans("0123456789", "0000000000")
_ASCII_DIGITS = bytes.maketrans(b"0123456789", b"0000000000")


def prose_score(text: str) -> float:
    """Return the part of a sentence's score that its words give."""
    score = 0.0
    if _DECISION.search(text):
        score += 3.0
    if _TODO.search(text):
        score += 1.5
    if _TROUBLE.search(text):
        score += 1.5
    if _OUTCOME.search(text):
        score += 1.5
    if _FIGURE.search(text):
        score += 2.0
    elif _NUMBER.search(text):
        score += 1.6
    elif masked(text) != text:
        score += 0.8
    score += min(FIGURES, 2.0 * max(0, len(_NUMBER.findall(text)) - 1))
    if _DATE.search(text):
        score += 1.2
    if _PATH.search(text):
        score += 1.2
    if _NAME.search(text):
        score += 1.5
    return score


def is_instruction(text: str) -> bool:
    """Return True when ``text`` of the user sounds like an instruction for more than its round."""
    return len(text) <= 600 and _STANDING.search(text) is not None


def decided(text: str) -> bool:
    """Return True when ``text`` sounds like a decision, or the reason for one."""
    return _DECISION.search(text) is not None


def line_score(line: str) -> float:
    """Return the score of a line that a tool printed."""
    return shaped_score(line, masked(line), program=code(line))


def shaped_score(line: str, shape: str, *, program: bool) -> float:
    """Return the same for a known ``shape``; ``program``: it looks like code. Fast, because there are many lines."""
    if program:
        # In programs, lines that raise or catch errors matter, and names of tickets.
        named = TICKET if "-" in line and _TICKET.search(line) else 0.0
        if _BAD.search(line):
            return named + (RAISING if _RAISED.search(line) else 0.3)
        return named
    score = 0.0
    if _BAD.search(line):
        score += 3.0 + (FAULT if _FAULT.match(line) else 0.0)
    if _TELLING.search(line):
        score += 1.5
    if shape != line:
        score += 0.4
        if _FIGURE.search(line):
            score += 0.8
    if "://" in line:
        score += 0.6
    if "-" in line and _TICKET.search(line):
        score += TICKET
    if "/" in line and _FILE.search(line):
        score += 0.6
    if ": " in line or " = " in line or "：" in line:
        score += 0.3
    return score


def code(line: str) -> bool:
    """Return True for a line that looks like a program's."""
    return line.lstrip("0123456789:+-> \t|").startswith(_CODE) or line.endswith(_ENDS)


def masked(line: str) -> str:
    """Return ``line`` with equal digits: lines that differ in figures only have one shape."""
    # Bytes take a quarter of the time.
    return line.encode().translate(_ASCII_DIGITS).decode() if line.isascii() else line.translate(_DIGITS)


def body(line: str) -> str:
    """Return ``line`` without a tool's line number and then without its indentation."""
    found = _GUTTER.match(line)
    return line[found.end() :] if found else line


# Novelty: how unlike the rest of the conversation a line is. Repeated text says little. Without a list of words it
# works for any language and any tool.

_WORD = regex(r"[^\W\d_]+|\d", re.UNICODE)
_WIDE = regex(r"[\u3040-\u9fff\uac00-\ud7af]")
_FORM = str.maketrans("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "a" * 26 + "A" * 26 + "0" * 10)
_BEGINNING = 14
_FEW = 8
STRANGER = 3.0
RARE = 4.0
"""One line in 2 to the power of this many: how often a line of code raises an error in usual conversations."""


class Phrases:
    """Counts pairs of neighbouring words in sentences."""

    def __init__(self, sentences: Iterable[str] = ()) -> None:
        self._often: Counter[tuple[str, str]] = Counter()
        for sentence in sentences:
            self._often.update(set(_pairs(sentence)))

    def novelty(self, sentence: str) -> float:
        """Return 0.2 for phrases only, up to 1 for unique sentences."""
        found = [1 / (1 + log2(max(1, self._often[pair]))) for pair in _pairs(sentence)]
        return 0.2 + 0.8 * sum(found) / len(found) if found else 0.6


def _pairs(sentence: str) -> Iterator[tuple[str, str]]:
    words: list[str] = []
    for word in _WORD.findall(sentence.casefold()):
        # Scripts without spaces: each character is a word.
        words += word if not word.isascii() and _WIDE.match(word) else [word]
    return pairwise(words)


class _Look(NamedTuple):
    form: str
    shape: str
    code: bool


@lru_cache(maxsize=16_384)
def _look(line: str) -> _Look:
    """Return the properties of a line alone. Facts, stubs and the newest steps need the same lines."""
    return _Look(body(line)[:_BEGINNING].translate(_FORM), masked(line), code(line))


@lru_cache(maxsize=16_384)
def _score(line: str) -> float:
    look = _look(line)
    return shaped_score(line, look.shape, program=look.code)


@frozen
class KnownWords:
    """Statistics of all lines that tools printed. ``shapes``: how many different lines have the same shape;
    ``raising``: the weight of a line of code that raises or catches an error, higher when they are rare."""

    shapes: Counter[str] = field(default_factory=Counter[str])
    raising: float = 1.0

    @staticmethod
    def of(texts: Iterable[str]) -> KnownWords:
        """Return the statistics of ``texts``. A repeated line, as of a file that is read again, is counted once."""
        lines = {line for text in texts for line in text.splitlines()}
        looks = list(map(_look, lines))
        raising = sum(look.code and _score(line) >= RAISING for line, look in zip(lines, looks, strict=True))
        rarity = log2(len(lines) / raising) / RARE if raising else 1.0
        return KnownWords(Counter(look.shape for look in looks), min(1.5, max(0.5, rarity)))


def scored_lines(found: Sequence[str], known: KnownWords, each: float) -> Iterator[tuple[float, int]]:
    """Return score and position of each line of a result: higher for unusual lines, lower for repetitions. ``each``:
    the base score of its lines."""
    count = len(found)
    looks = list(map(_look, found))
    beginnings = Counter(look.form for look in looks)
    uniform = 1 - len(beginnings) / count if count >= _FEW else 0.0
    for place, (look, scored) in enumerate(zip(looks, map(_score, found), strict=True)):
        alike = beginnings[look.form]
        # Each place where a program raises an error is different, however alike they look.
        raises = look.code and scored >= RAISING
        often = 1 if raises else max(1, known.shapes[look.shape])
        said = scored * known.raising if look.code else scored
        if count >= _FEW and alike > 2 and not raises:
            said /= 1 + log2(alike) / 3
        score = each * (1.5 if place < 2 or place >= count - 3 else 1.0) + said
        if alike == 1 and not look.code:
            score += STRANGER * uniform
        yield score / (1 + 0.35 * (often - 1)) if often < 20 else score / (4 + often / 10), place
