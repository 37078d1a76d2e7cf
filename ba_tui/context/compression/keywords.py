"""What makes a sentence or a line worth keeping, in English and in Chinese: the words and shapes to look for.

What is done with what is found is said in facts.py.
"""

from __future__ import annotations

import re
from functools import cache

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen


@frozen
class KeywordPatterns:
    """Patterns for prose. Made at their first use: start-up has no time for them."""

    standing: re.Pattern[str]
    decision: re.Pattern[str]
    todo: re.Pattern[str]
    trouble: re.Pattern[str]
    outcome: re.Pattern[str]
    figure: re.Pattern[str]
    date: re.Pattern[str]
    path: re.Pattern[str]
    name: re.Pattern[str]


_STANDING = r"""
    \b(?:always|never|from\ now\ on|in\ future|going\ forward|do(?:\ not|n[’']t)|must(?:\ not|n[’']t)?|make\ sure
    |remember|keep\ in\ mind|prefer|please\ (?:use|keep|write|answer|reply|avoid|do\ not|don[’']t)|only\ (?:use|ever)
    |under\ no\ circumstances|every\ time|whenever|no\ matter\ what|at\ all\ times|without\ (?:asking|my)
    |I(?:[’']m|\ am)|my\ (?:name|time\ ?zone|team|boss|manager|company|role)|call\ me|we\ (?:always|never|only)
    |not\ allowed|off\ limits|leave\ .{1,40}\ alone|stick\ to|hands\ off|has\ to\ stay|should\ (?:always|never|not))\b
    |请(?:始终|总是|一直|务必|用|使用|不要|别|记住|以后|先)|以后|今后|从现在起|永远|务必|切勿|不要|不许|不得|别再|必须|一律
    |始终|记住|我(?:是|叫|的名字)|每次|只(?:能|用|要)|禁止|统一用|凡是
"""
_DECISION = r"""
    \b(?:decid\w*|decision|chose\w*|choos\w*|opt(?:ed|ing)?\ for|(?:go|going|went)\ (?:with|for)|settled?\ on
    |instead\ of|rather\ than|because|since\ the|so\ that|the\ reason|therefore|trade-?off|agreed|picked
    |switch(?:ed|ing)?\ to|drop(?:ped)?\ the\ idea|rejected|ruled\ out|in\ favou?r\ of|why)\b
    |决定|选(?:择|用|定)|采用|改用|而不是|因为|由于|原因|所以|因此|放弃|否决|商定|定为|换成|理由
"""
_TODO = r"""
    \b(?:to-?do|next\ step|still\ (?:to|need|open|missing)|remain(?:s|ing)|left\ to\ do|not\ yet|later|follow-?up
    |open\ question|waiting\ (?:for|on)|blocked|before\ (?:we|the)\ release|deadline|due
    |by\ (?:Monday|Tuesday|Wednesday|Thursday|Friday))\b
    |待办|还(?:要|需|没)|未完成|接下来|下一步|剩下|尚未|稍后|等待|截止|之前完成
"""
_TROUBLE = r"""
    \b(?:\w*error|\w*exception|fail(?:ed|s|ure|ing)?|fatal|traceback|panic|denied|refused|timed?\ out|timeout|broken
    |crash\w*|cannot|can[’']t|unable|not\ found|missing|invalid|conflict\w*|warning)\b
    |错误|失败|异常|报错|无法|超时|拒绝|崩溃|不存在
"""
_OUTCOME = r"""
    \b(?:total|result\w*|found|turns?\ out|root\ cause|caused?\ by|conclu\w+|in\ short|summary|confirmed|measured
    |equals?|answer|mean|median|average|rate|grew|rose|fell|peak\w*|highest|lowest|owner|owned|responsible|contact|version
    |done|fixed|finished|works|passed|deployed|released|renamed|moved|called|named|key\ (?:fact|point|finding))\b
    |结论|结果|总(?:计|共|额)|合计|平均|发现|原来|根本原因|已(?:完成|修复|部署|改)|最高|最低|负责|版本|增长|下降|占比|联系
"""
_FIGURE = r"""
    [$€£¥\d](?:(?<=[$€£¥])\ ?\d|(?<=\d)(?<![\d.,].)[\d.,\ ]*+(?:
    %|‰|[kKMGT]i?B\b|[kMG]?Hz\b|ms\b|µs\b|s\b|min\b|h\b|kg\b|g\b|km\b|m²|°C
    |px\b|x\b
    |(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|rows?|lines?|files?|tokens?|users?|orders?|requests?
    |percent|points?|times|million|billion|thousand|EUR|USD|GBP|CNY|RMB|tons?|units?|pods?|nodes?|replicas?|retries
    |items?)\b
    |[万亿千百]?(?:元|个|条|行|人|次|天|年|月|小时|分钟|秒|台|件|吨|公里|米|倍|名|份|户|家|笔|页)))
"""
_DATE = r"""
    \b\d{4}-\d{2}(?:-\d{2})?\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b|\b\d{1,2}:\d{2}\b
    |\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?\ \d{1,4}\b
    |\b\d{1,2}\.?\ (?:January|February|March|April|May|June|July|August|September|October|November|December)\b
    |\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b|\bQ[1-4]\b
    |\d{1,4}\ ?年|\d{1,2}\ ?月\ ?\d{1,2}|[周星期]{1,2}[一二三四五六日天]
"""
_PATH = r"""
    https?://\S+|(?:[\w.~-]+/|/)[\w.-]+|\b[\w-]+\.(?:[a-z]{1,5}\d?|[A-Z]{2,4})\b|@[\w-]+\.\w+|\b[A-Z]\w*-\d+\b
"""
_NAME = r"""
    (?<=[a-z,:(]\ )[A-Z][a-zà-ÿ’'-]+\ [A-Z]|\b(?:Mr|Mrs|Ms|Dr|Prof)\.?\ [A-Z]
    |\b(?:named|called|by|from|with|ask|tell|to|contact|owner(?:\ is)?|is)\ [A-Z][a-zà-ÿ]+\b
    |[\u4e00-\u9fff]{1,4}(?:先生|女士|老师|经理|总监|工程师|主任|公司|部门|团队)
    |(?:叫|姓|负责人|联系人|同事|客户|供应商)[\u4e00-\u9fff：:]{2,5}|[“"`'「《][^“”"`'」》]{2,40}[”"`'」》]
"""


@cache
def keyword_patterns() -> KeywordPatterns:
    loose = re.VERBOSE | re.IGNORECASE
    return KeywordPatterns(
        standing=re.compile(_STANDING, loose),
        decision=re.compile(_DECISION, loose),
        todo=re.compile(_TODO, loose),
        trouble=re.compile(_TROUBLE, loose),
        outcome=re.compile(_OUTCOME, loose),
        figure=re.compile(_FIGURE, re.VERBOSE),
        date=re.compile(_DATE, re.VERBOSE),
        path=re.compile(_PATH, re.VERBOSE),
        name=re.compile(_NAME, re.VERBOSE),
    )


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
"""What a line counts more that begins with the name of an error."""
_TICKET = regex(r"[A-Z](?<!\w.)[A-Z]{1,7}-\d{2,}\b")
TICKET = 1.5
_FILE = regex(r"/(?<=[\w.-]/)[\w.-]+\w")
_GUTTER = regex(r"\s*\d+[:|\t→]\s*")
_NUMBER = regex(r"(?<!\d)\d[\d,]*(?:\d{2}|\.\d)")
"""Three digits, or a fraction."""
FIGURES = 8.0
"""What further figures add at most to a sentence that has one; each counts as much as the first."""
_DIGITS = str.maketrans("0123456789", "0000000000")
_ASCII_DIGITS = bytes.maketrans(b"0123456789", b"0000000000")


def prose_score(text: str) -> float:
    """What the words of ``text`` add to how much its sentence counts."""
    known = keyword_patterns()
    score = 0.0
    if known.decision.search(text):
        score += 3.0
    if known.todo.search(text):
        score += 1.5
    if known.trouble.search(text):
        score += 1.5
    if known.outcome.search(text):
        score += 1.5
    if known.figure.search(text):
        score += 2.0
    elif _NUMBER.search(text):
        score += 1.6
    elif masked(text) != text:
        score += 0.8
    score += min(FIGURES, 2.0 * max(0, len(_NUMBER.findall(text)) - 1))
    if known.date.search(text):
        score += 1.2
    if known.path.search(text):
        score += 1.2
    if known.name.search(text):
        score += 1.5
    return score


def is_instruction(text: str) -> bool:
    """True when ``text``, said by the person, sounds as if it holds for longer than its round."""
    return len(text) <= 600 and keyword_patterns().standing.search(text) is not None


def decided(text: str) -> bool:
    """True when ``text`` sounds like a decision, or the reason for one."""
    return keyword_patterns().decision.search(text) is not None


def line_score(line: str) -> float:
    """The same for a line that a tool printed."""
    return shaped_score(line, masked(line), program=code(line))


def shaped_score(line: str, shape: str, *, program: bool) -> float:
    """The same where its ``shape`` is known, and whether it looks like a line of a ``program``: cheap, because there
    are many lines."""
    if program:
        # Of a program, the lines that count are those where something goes wrong or is caught, and what names a ticket.
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
        if keyword_patterns().figure.search(line):
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
    """True for a line that looks like a program's."""
    return line.lstrip("0123456789:+-> \t|").startswith(_CODE) or line.endswith(_ENDS)


def masked(line: str) -> str:
    """``line`` with all digits alike: what repeats but for its figures is one shape."""
    # Bytes take a quarter of the time.
    return line.encode().translate(_ASCII_DIGITS).decode() if line.isascii() else line.translate(_DIGITS)


def body(line: str) -> str:
    """``line`` without the number that a tool put before it, and then without its indentation."""
    found = _GUTTER.match(line)
    return line[found.end() :] if found else line
