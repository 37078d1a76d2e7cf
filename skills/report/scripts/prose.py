"""Markdown to HTML: headings, paragraphs, lists, tables, quotes, code, links, pictures, emphasis. No script.

Everything is escaped: HTML in the text is shown, never run. Pictures are asked for by name, so nothing is loaded later.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape

ITEM = re.compile(r"( *)([-*+]|\d{1,9}[.)]) +(.*)")
ROW = re.compile(r" *\|?.*\|.*")
RULE = re.compile(r" *\|?( *:?-+:? *\|)+( *:?-+:? *)?")
INLINE = re.compile(
    r"\\(?P<escaped>[\\`*_{}\[\]()#+\-.!|<>~])"
    r"|(?P<tick>`+)(?P<code>.+?)(?P=tick)(?!`)"
    r"|!\[(?P<alt>[^\]]*)\]\((?P<src>[^)\s]+)\)"
    r"|\[(?P<text>(?:[^\[\]]|\[[^\]]*\])+)\]\((?P<href>(?:[^()\s]|\([^()\s]*\))+)\)"
    r"|\*\*(?P<strong>(?=\S).+?(?<=\S))\*\*|(?<!\w)__(?P<strong2>(?=\S).+?(?<=\S))__(?!\w)"
    r"|\*(?P<em>(?=[^\s*]).+?(?<=\S))\*|(?<!\w)_(?P<em2>(?=[^\s_]).+?(?<=\S))_(?!\w)"
    r"|~~(?P<gone>.+?)~~|<(?P<auto>https?://[^>\s]+)>|(?P<br>(?: {2,}|\\)\n)",
    re.DOTALL,
)
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
Picture = Callable[[str, str], str]


class Prose:
    """One document; ``headings`` are (level, id, words) once it was rendered."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.headings: list[tuple[int, str, str]] = []

    def html(self, text: str) -> str:
        return "\n".join(self.blocks(text.expandtabs(4).replace("\r\n", "\n").split("\n"), 0))

    def blocks(self, lines: list[str], depth: int) -> list[str]:
        done: list[str] = []
        place = 0
        while place < len(lines):
            line = lines[place]
            if not line.strip():
                place += 1
            elif match := re.match(r" {0,3}(`{3,}|~{3,})(.*)", line):
                place = self.fence(lines, place, match[1], done)
            elif match := re.fullmatch(r" {0,3}(#{1,6}) +(.*?)(?: +#+)? *", line):
                done.append(self.heading(len(match[1]), match[2]))
                place += 1
            elif re.fullmatch(r" {0,3}([-*_])( *\1){2,} *", line):
                done.append("<hr>")
                place += 1
            elif line.lstrip().startswith(">") and depth < 20:
                end = ended(lines, place, lambda one: bool(one.strip()))
                inner = [re.sub(r"^ *> ?", "", one) for one in lines[place:end]]
                done.append("\n".join(["<blockquote>", *self.blocks(inner, depth + 1), "</blockquote>"]))
                place = end
            elif ITEM.fullmatch(line) and depth < 20:
                place = self.listing(lines, place, depth, done)
            elif ROW.fullmatch(line) and place + 1 < len(lines) and RULE.fullmatch(lines[place + 1]):
                end = ended(lines, place, lambda one: "|" in one)
                done.append(self.table(lines[place:end]))
                place = end
            else:
                end = ended(lines, place + 1, lambda one: bool(one.strip()) and not begins(one))
                done.append(self.paragraph(lines[place:end]))
                place = end
        return done

    def paragraph(self, lines: list[str]) -> str:
        text = "\n".join(line.lstrip() for line in lines).rstrip()
        alone = PICTURE.fullmatch(text)
        if not alone:
            return f"<p>{self.inline(text)}</p>"
        caption = f"<figcaption>{self.inline(alone[1])}</figcaption>" if alone[1] else ""
        return f"<figure>{self.picture(alone[2], alone[1])}{caption}</figure>"

    def fence(self, lines: list[str], place: int, mark: str, done: list[str]) -> int:
        end = ended(lines, place + 1, lambda one: not one.strip().startswith(mark) or one.strip(" `~") != "")
        done.append(f"<pre><code>{escape(chr(10).join(lines[place + 1 : end]))}</code></pre>")
        return end + 1

    def heading(self, level: int, words: str) -> str:
        name = re.sub(r"[^\w]+", "-", words.lower()).strip("-") or "part"
        known = sum(1 for _, id, _ in self.headings if id == name or re.fullmatch(rf"{re.escape(name)}-\d+", id))
        name = f"{name}-{known + 1}" if known else name
        self.headings.append((level, name, words))
        return f'<h{level} id="{escape(name)}">{self.inline(words)}</h{level}>'

    def listing(self, lines: list[str], place: int, depth: int, done: list[str]) -> int:
        first = ITEM.fullmatch(lines[place])
        inset, ordered = len(first[1]) if first else 0, bool(first and first[2][0].isdigit())
        parts = [f'<ol start="{int(first[2][:-1])}">' if first and ordered else "<ul>"]
        while place < len(lines):
            match = ITEM.fullmatch(lines[place])
            if not match or len(match[1]) != inset or match[2][0].isdigit() != ordered:
                break
            room = len(match[1]) + len(match[2]) + 1
            end = ended(lines, place + 1, lambda one: not one.strip() or len(one) - len(one.lstrip()) > inset)
            while end > place + 1 and not lines[end - 1].strip():
                end -= 1
            inner = self.blocks(
                [match[3], *(one[min(room, len(one) - len(one.lstrip())) :] for one in lines[place + 1 : end])],
                depth + 1,
            )
            tight = len(inner) and inner[0].startswith("<p>") and not any(not one.strip() for one in lines[place:end])
            parts.append(f"<li>{inner[0][3:-4] if tight else ''.join(inner[:1])}{''.join(inner[1:])}</li>")
            place = end
            while place + 1 < len(lines) and not lines[place].strip() and ITEM.fullmatch(lines[place + 1]):
                place += 1
        done.append("\n".join([*parts, "</ol>" if ordered else "</ul>"]))
        return place

    def table(self, lines: list[str]) -> str:
        names, rule, *rows = [cells(line) for line in lines]
        right = [one.strip().endswith(":") for one in rule]
        numbers = [bool(rows) and all(numeric(row[at]) for row in rows if at < len(row)) for at in range(len(names))]
        ends = [' class="n"' if (at < len(right) and right[at]) or numbers[at] else "" for at in range(len(names))]
        head = "".join(f"<th{end}>{self.inline(name)}</th>" for name, end in zip(names, ends, strict=True))
        body = "\n".join(
            "<tr>"
            + "".join(f"<td{end}>{self.inline(row[at]) if at < len(row) else ''}</td>" for at, end in enumerate(ends))
            + "</tr>"
            for row in rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"

    def inline(self, text: str) -> str:
        parts, last = list[str](), 0
        for match in INLINE.finditer(text):
            parts += [escape(text[last : match.start()]), self.piece(match)]
            last = match.end()
        return "".join([*parts, escape(text[last:])])

    def piece(self, match: re.Match[str]) -> str:
        found = {name: value for name, value in match.groupdict().items() if value is not None}
        for name, tag in (("strong", "strong"), ("strong2", "strong"), ("em", "em"), ("em2", "em"), ("gone", "del")):
            if name in found:
                return f"<{tag}>{self.inline(found[name])}</{tag}>"
        if "code" in found:
            return f"<code>{escape(found['code'].strip())}</code>"
        if "src" in found:
            return self.picture(found["src"], found["alt"])
        if "text" in found or "auto" in found:
            return self.link(found.get("href") or found.get("auto", ""), found.get("text") or found.get("auto", ""))
        return "<br>\n" if "br" in found else escape(found.get("escaped", ""))

    def link(self, address: str, words: str) -> str:
        if not address.startswith(("https://", "http://", "mailto:", "#")):
            return f"{self.inline(words)} ({escape(address)})"
        return f'<a href="{escape(address)}">{escape(words) if words == address else self.inline(words)}</a>'


def ended(lines: list[str], place: int, goes_on: Callable[[str], bool]) -> int:
    while place < len(lines) and goes_on(lines[place]):
        place += 1
    return place


def begins(line: str) -> bool:
    """Whether something other than a paragraph starts here."""
    return bool(re.match(r" {0,3}(#{1,6} |>|`{3}|~{3})", line) or ITEM.fullmatch(line))


def cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    inner = inner.removesuffix("|") if not inner.endswith("\\|") else inner
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]


def numeric(cell: str) -> bool:
    return not cell or bool(re.fullmatch(r"[-+−]?[$€£¥]?[-+−]?\d[\d.,'  ]*\s?(%|[A-Za-z€]{1,3})?", cell))
