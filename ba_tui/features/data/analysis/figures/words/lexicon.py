"""Words of six languages that say what a figure is: a guess, a date, a label, a thing that is counted.

Words that name an operation are in operations.
"""

from __future__ import annotations


def listed(words: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(words.split())


MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar janvier enero ene jänner janv",
            "february feb februar février febrero févr",
            "march mar märz mars marzo mrz",
            "april apr avril abril abr avr",
            "may mai mayo",
            "june jun juni juin junio",
            "july jul juli juillet julio juil",
            "august aug août agosto ago",
            "september sep sept septembre septiembre",
            "october oct oktober okt octobre octubre",
            "november nov novembre noviembre",
            "december dec dezember dez décembre diciembre dic déc",
        ),
        1,
    )
    for name in names.split()
}


def _phrases(kind: str, words: str) -> dict[str, str]:
    return dict.fromkeys(words.split("|"), kind)


HEDGES = {
    **_phrases(
        "near",
        "about|around|roughly|approximately|approx|approx.|circa|ca.|ca|some|region of|order of|approaching"
        "|an estimated|rund|etwa|ungefähr|ungefaehr|zirka|environ|près de|peu près|autour de|quelque"
        "|alrededor de|aproximadamente|unos|unas|cerca de",
    ),
    **_phrases(
        "over",
        "over|more than|above|at least|upwards of|exceeds|exceeded|exceeding|north of|just over|slightly over|über"
        "|mehr als|gut|mindestens|knapp über|plus de|au moins|más de|al menos|a little over",
    ),
    **_phrases(
        "under",
        "under|less than|below|fewer than|up to|at most|nearly|almost|close to|just under|just below|unter"
        "|weniger als|höchstens|bis zu|knapp|fast|beinahe|moins de|au plus|presque|menos de|como máximo|casi|not quite",
    ),
}
"""Before a number, at most two words."""
CJK_HEDGES = (
    ("大约|大概|大致|大約|约为|约|約|およそ|ほぼ|だいたい", "near"),
    ("超过|超過|逾|多于|至少|高于|不少于", "over"),
    ("将近|接近|近|不到|不足|少于|低于|未満|至多", "under"),
)
TILDES = "~≈∼～〜"
HEDGED_BEHIND = {
    "左右": "near",
    "上下": "near",
    "前後": "near",
    "ほど": "near",
    "程度": "near",
    "多": "over",
    "余": "over",
    "以上": "over",
}
ACROSS = listed(
    "average mean averaged year annum median total sum spread distributed added taken computed im pro par al"
)
"""Before ``over``: then it means across, and is no hedge."""

YEAR_CUES = listed(
    "in since from until till by year years of during before after between and to through mid end fiscal "
    "early late seit von bis ab jahr jahre jahren im um nach vor und auf zwischen ende anfang mitte en "
    "depuis de à entre et année vers desde hasta año y a del al than for as with against versus vs vs. "
    "gegenüber was"
)
CJK_YEAR_CUES = "自从至到在于与和、，"

STRONG_LABELS = {
    **_phrases("line_numbers", "line|lines|zeile|zeilen|ligne|lignes|línea|líneas"),
    **_phrases(
        "figure_ref",
        "page|pages|p.|pp.|section|sections|chapter|chapters|figure|figures|fig|fig.|table|tables|tab.|appendix|annex|seite|seiten|abschnitt"
        "|kapitel|abbildung|abb|abb.|tabelle|anlage|absatz|chapitre|tableau|annexe|página|páginas|sección|capítulo|figura|tabla|anexo"
        "|slide|footnote|eq.|equation|schritt|step|steps|phase|étape|paso|chart|diagram|exhibit|box|annexes",
    ),
    **_phrases("status_code", "http|http/1.1|http/2|status|exit|error|errno|fehler|erreur|statuscode|rc"),
    **_phrases(
        "version",
        "version|versions|v|v.|python|node|node.js|ruby|java|rust|php|perl|swift|kotlin|scala|julia|lua|postgresql|postgres|mysql"
        "|mariadb|sqlite|duckdb|pandas|numpy|polars|ubuntu|debian|fedora|macos|ios|android|windows|linux|kernel|chrome|firefox|safari"
        "|gcc|clang|django|flask|react|vue|angular|textual|msrv|tls|ssl|unicode|cuda|openssl|docker|kubernetes|terraform|spark|kafka"
        "|redis|nginx|qt|cmake|npm|pip|pytest|gpt|claude|gemini|llama|qwen|release|build|utf|http",
    ),
    **_phrases(
        "label",
        "port|ports|pid|issue|issues|pr|mr|ticket|tickets|room|raum|salle|sala|no.|nr|nr.|num|num.|№|n°|nº|nummer|numéro|número|boeing"
        "|airbus|rfc|iso|iec|din|ansi|pep|id|isbn|zip|plz|postcode|platz|rang|rank|ranks|ranked|place|stelle|puesto|klasse|variante|flight"
        "|flug|vol|train|gate|terminal|route|highway|apollo|district|revision|rev|commit|artikel|art.|§|paragraph|band|teil|frage"
        "|question|scenario|experiment|variant|zone|level|tier|stage|grade|round|stufe|grupo|groupe|anexo|seed|top|topic|chapter",
    ),
}
"""The word before a number that it numbers, and so makes no figure."""
WEAK_LABELS = listed(
    "row rows cell column part case model type class group cluster batch run test rule area item items day week layer"
)
"""The same, unless a word that can be counted follows."""
CJK_LABELS = (
    "第",
    "图",
    "表",
    "步骤",
    "版本",
    "编号",
    "端口",
    "状态码",
    "退出码",
    "错误码",
    "页码",
    "章节",
    "ページ",
    "バージョン",
    "ステップ",
)
CJK_ORDINALS = "名位个次季期行页天周号条项回番章节列步级轮"
GERMAN_RANKED = listed(
    "platz rang stelle quartal halbjahr jahrhundert perzentil woche spieltag runde tag monat jahr zeile "
    "spalte dezil quartil auflage kapitel schritt"
)
RANK_HEADERS = listed(
    "# rank rang ranking nr nr. no no. n° pos pos. position place platz puesto rangs 排名 名次 序号 順位 "
    "编号 № id index idx 位次"
)
CODE_WORDS = listed("code codes")
PREFIXES = listed("x us usd eur chf gbp cny rmb inr jpy rs rs. r$ aud cad nzd hkd sgd sek nok dkk pln brl mxn")
"""What may stand right before the digits of a figure without making a name of it."""
NO_NOUNS = listed(
    "is was has does as its this plus versus vs across thus less minus les des das als bis aus les nos "
    "ses ces las los es sus más years months days weeks"
)
NO_COUNTED = "年月日至到的和与为在是、比共但而之中"
