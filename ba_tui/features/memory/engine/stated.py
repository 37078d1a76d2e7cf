"""Facts that users state about themselves or the project, found by rules: English, German and Chinese.

Pure. The facts are only proposed; the user decides whether to store them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from ba_tui.core.ports.memory import Draft, Kind
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

LONGEST = 300
"""Maximum characters of one statement. A longer one is a text, not a fact."""
READ = 4_000
MOST = 3
"""Maximum statements of one prompt."""
PERSON, PROJECT = "person", "project"

_FENCE = regex(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_QUOTED = regex(r"^\s*(?:>|\||#!|\$ |[-+]{3} ).*$", re.MULTILINE)
_SENTENCE = regex(r"[^\n.!?;。！？；]+(?:\.(?=\w)[^\n.!?;。！？；]*)*[.!?;。！？；]*")
_OPENING = regex(
    r"^(?:(?:by the way|fyi|btw|also|and|so|but|ok(?:ay)?|hi|hello|(?:please )?note(?: that)?|just so you know|"
    r"übrigens|und|hallo|nur zur info|bitte beachte,? dass)[\s,:-]+|(?:顺便说一?下|另外|对了|请注意)[\s,，:：]*)+",
    re.IGNORECASE,
)
_ASKED = regex(r"[?？]\s*$|什么|几[月号点个]|怎么|哪[个里些]|多少|谁|吗|呢$")
_DOUBTED = regex(
    r"\b(?:if|whether|would|could|suppose|imagine|unless|maybe|perhaps|wenn|falls|ob|würde|könnte|vielleicht|angenommen)\b"
    r"|如果|假如|假设|要是|也许|可能|是否",
    re.IGNORECASE,
)
_POINTING = regex(
    r"^(?:it|this|that|these|those|both|neither|option\b.*|"
    r"the (?:first|second|third|last|other|latter|former|one|new|old)\b.*|"
    r"das|dies\w*|es|beide\w*|die (?:erste|zweite|dritte|letzte|andere)\b.*|这\S*|那\S*|第\S*|它|前者|后者)$",
    re.IGNORECASE,
)
"""Words that are only understood within the conversation."""


@frozen
class _Rule:
    """``attribute`` may name groups of the pattern, as ``{what}``."""

    pattern: re.Pattern[str]
    kind: Kind
    subject: str
    attribute: str


_WHAT = r"(?P<what>[^,:]{2,50}?)"
_STATE = r"(?! (?:not |now |still )?(?:working|broken|failing|wrong|slow|down|empty|missing|gone|too)\b)"
"""Temporary states, which are not facts."""
_IS = r"(?P<verb>is|are|starts?|begins?|ends?|runs?|lives?|uses?)\b"
_IST = r"(?P<verb>ist|sind|beginnt|beginnen|startet|endet|enden|läuft|liegt|liegen|nutzt)\b"
_ON = r" (?P<about>\S.*)"
_GROUPS: tuple[tuple[Kind, str, str, tuple[str, ...]], ...] = (
    (
        *("fact", PERSON, "name"),
        (
            r"(?:please )?(?:call|address) me (?P<about>(?!back|later|when|if|a |an |the )\S.+)",
            r"my name(?: is|['’]s) (?P<about>\S.*)",
            r"(?:bitte )?(?:nenn|ruf)e? mich (?P<about>(?!an\b|zurück)\S.+)",
            r"(?:mein name ist|ich hei(?:ß|ss)e) (?P<about>\S.*)",
            r"(?:请|以后|你可以)*(?:叫我|称呼我为?)(?P<about>\S+)",
            r"我(?:的名字)?(?:叫|名字是)(?P<about>\S+)",
        ),
    ),
    (
        *("preference", PERSON, "language of answers"),
        (
            r"(?:please )?(?:always |from now on,? )?(?:answer|reply|respond|write)(?: to)?(?: me)?(?: always)? in "
            r"(?P<about>english|german|chinese|french|spanish|italian|dutch|japanese|portuguese)\b.*",
            r"(?:bitte )?(?:antworte|schreibe?)(?: mir)?(?: bitte)?(?: immer)? (?:auf|in) "
            r"(?P<about>deutsch|englisch|chinesisch|französisch|spanisch|italienisch)\b.*",
            r"(?:请|以后)?(?:总是|始终|一直|都)?用(?P<about>中文|英文|英语|德语|法语|日语)(?:回答|回复|写).*",
        ),
    ),
    ("preference", PERSON, "{what}", (r"my (?:preferred|favou?rite) (?P<what>[\w -]{2,40}?) (?:is|are)" + _ON,)),
    (
        *("preference", PERSON, ""),
        (
            r"i (?:really |strongly |usually |always |generally )?prefer" + _ON,
            r"i (?:really |strongly )?(?:like|love|hate|dislike|don['’]t like|can['’]t stand)" + _ON,
            r"(?:please )?(?:always|never|from now on,?|in (?:the )?future,?)" + _ON,
            r"ich (?:bevorzuge|mag(?: lieber| keine?)?|hasse)" + _ON,
            r"mir ist (?P<about>.+ lieber\b.*)",
            r"(?:bitte )?(?:immer|niemals|nie|ab jetzt|in zukunft|künftig)" + _ON,
            r"我(?:更|比较|最|不)?(?:喜欢|偏好|偏爱|倾向于?|讨厌)(?P<about>\S.*)",
            r"(?:请)?(?:总是|始终|永远不要|从不|以后都?|今后)(?P<about>\S.*)",
        ),
    ),
    (
        *("fact", PERSON, "work"),
        (
            r"i (?:work|am working) (?:at|for|as|in)" + _ON,
            r"ich arbeite (?:bei|als|für|in|im)" + _ON,
            r"我在(?P<about>\S+?)(?:工作|上班)",
        ),
    ),
    ("fact", PERSON, "role", (r"i(?: am|['’]m) (?:a|an|the) (?P<about>(?!bit|little|lot|few|fan)\S.*)",)),
    (
        *("fact", PERSON, "place"),
        (r"i(?: live| am based|['’]m based) in" + _ON, r"ich wohne in" + _ON, r"我住在(?P<about>\S+)"),
    ),
    (
        *("fact", PROJECT, "{what} {verb}"),
        (
            rf"(?:our|the (?:company|team|project)['’]s) {_WHAT} {_IS}{_STATE}{_ON}",
            rf"unser(?:e[nrms]?)? {_WHAT} {_IST}{_ON}",
            r"我们(?:公司|团队|项目)?的(?P<what>[^，,是从在]{1,20}?)(?P<verb>是|从|在|为)(?P<about>\S.*)",
        ),
    ),
    (
        *("fact", PERSON, "{what} {verb}"),
        (
            rf"my {_WHAT} {_IS}{_STATE}{_ON}",
            rf"mein(?:e[nrms]?)? {_WHAT} {_IST}{_ON}",
            r"我的(?P<what>[^，,是从在]{1,20}?)(?P<verb>是|从|在|为)(?P<about>\S.*)",
        ),
    ),
    (
        *("fact", PROJECT, ""),
        (
            r"we (?:always |never |usually )?(?:use|report|measure|bill|invoice|deploy|store|count|treat)\b" + _ON,
            r"wir (?:verwenden|benutzen|nutzen|berichten|rechnen|zählen|speichern)\b" + _ON,
            r"我们(?:一直|总是|都)?(?:使用|用)(?P<about>\S.*)",
        ),
    ),
)
_RULES = tuple(
    _Rule(regex(rf"^(?:{pattern})", re.IGNORECASE), kind, subject, attribute)
    for kind, subject, attribute, patterns in _GROUPS
    for pattern in patterns
)
_COPULA = regex(r"(?: (?:is|are|ist|sind)|是|为)$")
_NUMBER = regex(r"\d+(?:[.,:/-]\d+)*")
_VALUE = regex(
    r"(?:\b(?:is|are|was|were|costs?|starts?|ends?|begins?|takes?|has|have|ist|sind|war|beträgt|kostet|beginnt|endet|hat)\b|[:=]"
    r"|是|为|：|有)[^.;。；]*$",
    re.IGNORECASE,
)


def stated(text: str, source: str = "") -> tuple[Draft, ...]:
    """Return the facts and preferences that ``text``, a prompt typed by the user, states; ``source`` is its id.

    Questions, conditions, quotations and code state nothing; statements that depend on the conversation are ignored.
    """
    text = _QUOTED.sub("", _FENCE.sub("", text[:READ]))
    return tuple(islice(_drafts(text, source), MOST))


def _drafts(text: str, source: str) -> Iterator[Draft]:
    for found in _SENTENCE.finditer(text):
        sentence = _OPENING.sub("", found[0].strip())
        if len(sentence) > LONGEST or _ASKED.search(sentence) or _DOUBTED.search(sentence):
            continue
        draft = classified(sentence, source)
        if draft.subject:
            yield draft


def classified(text: str, source: str = "") -> Draft:
    """Return ``text``, which the user wants to store, as a draft: kind, subject and attribute as far as rules find
    them.
    """
    words = text.strip().rstrip(".。;；!！").strip()
    for rule in _RULES:
        if not (match := rule.pattern.match(words)):
            continue
        groups = {name: (value or "").strip() for name, value in match.groupdict().items()}
        if _POINTING.match(groups["about"]):
            break
        attribute = _COPULA.sub("", rule.attribute.format_map(groups).casefold().strip()).strip()
        return Draft(_capital(words), rule.kind, subject=rule.subject, attribute=attribute, source=source)
    return Draft(text.strip(), source=source)


def value_changed(older: str, newer: str) -> bool:
    """Return whether two texts that differ only in numbers are one fact with a new value (``VAT is 19`` and ``20``),
    not facts about two numbered things (``Invoice 12 is paid`` and ``13``).
    """
    old, new = list(_NUMBER.finditer(older)), list(_NUMBER.finditer(newer))
    if len(old) != len(new):
        return False
    first = next((one for one, other in zip(old, new, strict=True) if one[0] != other[0]), None)
    return first is not None and _VALUE.search(older[: first.start()]) is not None


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
