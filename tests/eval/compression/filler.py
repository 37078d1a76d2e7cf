"""What fills real agent runs: files, logs, tables, pages, test runs, and an agent's remarks on them. No facts to keep.

The same seed always gives the same text.
"""

from __future__ import annotations

import re
from random import Random

NOUNS = re.findall(
    r"\w+",
    "order ledger batch cursor bucket window reader parser worker queue handler token record region column segment "
    "shard session index cache stream signal branch planner buffer packet route policy tenant vector",
)
VERBS = re.findall(
    r"\w+", "load merge split check build store fetch route drain rotate expand resolve apply trim align collect"
)
PLACES = re.findall(r"\w+", "src lib app core service engine tool adapter store model view task")
ZH = re.findall(
    r"\w+",
    "货架 托盘 单据 批次 系统 记录 主管 班组 库位 条码 月台 车辆 订单 流程 "
    "数据 页面 接口 模块 配置 字段 清单 样本 时间 状态 编号",
)
ZH_VERBS = re.findall(r"\w+", "登记 核对 移动 检查 更新 合并 导出 扫描 确认 补录 转移 归档 读取 标记")
STACK = ("py", "ts", "go", "rb", "java")


def words(random: Random, count: int) -> str:
    return " ".join(random.choice(NOUNS if number % 3 else VERBS) for number in range(count))


def path(random: Random) -> str:
    depth = "/".join(random.choice(PLACES) for _ in range(random.randint(1, 3)))
    return f"{depth}/{random.choice(NOUNS)}_{random.choice(VERBS)}.{random.choice(STACK)}"


def code(random: Random, lines: int) -> list[str]:
    found: list[str] = []
    while len(found) < lines:
        name, other = random.choice(NOUNS), random.choice(NOUNS)
        found += [
            f"def {random.choice(VERBS)}_{name}({other}, limit={random.randint(1, 500)}):",
            f'    """{words(random, 9).capitalize()}."""',
            f"    if {other}.{name}_count > {random.randint(2, 9999)}:",
            f'        raise ValueError(f"{words(random, 4)}: {{{other}}}")',
            f"    {name} = [{random.choice(VERBS)}(item) for item in {other}.{random.choice(NOUNS)}s]",
            f'    log.info("%s {words(random, 3)}", {name})',
            f"    return {name}[:limit]  # {words(random, 6)}",
            "",
        ]
    return [f"{number:5d}\t{line}" for number, line in enumerate(found[:lines], 1)]


def log(random: Random, lines: int) -> list[str]:
    found: list[str] = []
    second = random.randint(0, 50_000)
    for _ in range(lines):
        second += random.randint(0, 7)
        level = random.choices(("INFO", "DEBUG", "WARN", "ERROR"), (70, 22, 6, 2))[0]
        stamp = f"2026-10-{1 + second // 86_400 % 28:02d}T{second // 3600 % 24:02d}:{second // 60 % 60:02d}"
        tail = f"{random.choice(NOUNS)}={random.randint(1, 99_999)} took={random.randint(1, 900)}ms"
        found.append(
            f"{stamp}:{second % 60:02d}Z {level} [{random.choice(NOUNS)}-{random.randint(1, 9)}] "
            f"{words(random, random.randint(3, 7))} {tail}"
        )
    return found


def table(random: Random, lines: int) -> list[str]:
    head = " | ".join(random.choice(NOUNS) for _ in range(6))
    found = [head, "-" * len(head)]
    for number in range(lines):
        cells = [str(number), random.choice(NOUNS), f"{random.uniform(1, 90_000):.2f}", f"{random.randint(1, 9999):,}"]
        found.append(" | ".join([*cells, f"{random.uniform(0, 100):.1f}%", random.choice(PLACES)]))
    return found


def page(random: Random, lines: int) -> list[str]:
    found: list[str] = []
    for number in range(lines):
        if number % 9 == 0:
            found += ["", f"## {words(random, 4).capitalize()}", ""]
        sentences = [f"{words(random, random.randint(8, 16)).capitalize()}." for _ in range(2)]
        if random.random() < 0.3:
            sentences.append(f"The {random.choice(NOUNS)} reached {random.randint(2, 98)} % after {words(random, 3)}.")
        found.append(" ".join(sentences))
    return found


def tests(random: Random, lines: int) -> list[str]:
    found = [f"collected {lines} items"]
    for number in range(lines):
        where = f"tests/test_{random.choice(NOUNS)}.py::test_{random.choice(VERBS)}_{random.choice(NOUNS)}"
        found.append(f"{where} PASSED [{100 * number // lines:3d}%]")
    return [*found, f"===== {lines} passed in {random.uniform(2, 90):.2f}s ====="]


def listing(random: Random, lines: int) -> list[str]:
    return [f"{random.randint(100, 99_000):8d}  {path(random)}" for _ in range(lines)]


def zh(random: Random, lines: int) -> list[str]:
    found: list[str] = []
    for number in range(lines):
        text = "".join(random.choice(ZH_VERBS if place % 3 == 1 else ZH) for place in range(random.randint(8, 16)))
        found.append(
            f"{number + 1}\t{text}，{random.choice(ZH)}{random.randint(1, 9999)}号，{random.choice(ZH_VERBS)}完毕。"
        )
    return found


KINDS = {"code": code, "log": log, "table": table, "page": page, "tests": tests, "listing": listing, "zh": zh}
TYPICAL = {"code": 120, "log": 55, "table": 90, "page": 30, "tests": 75, "listing": 120, "zh": 70}
TOOLS = {
    "code": "read_file",
    "log": "shell",
    "table": "sql",
    "page": "web_fetch",
    "tests": "shell",
    "listing": "list_files",
    "zh": "read_file",
}


def target(random: Random, kind: str) -> str:
    match kind:
        case "log":
            return f"tail -n 400 /var/log/{random.choice(NOUNS)}-{random.randint(1, 30)}.log"
        case "tests":
            return f"pytest tests/test_{random.choice(NOUNS)}.py"
        case "table":
            return f"select * from {random.choice(NOUNS)}s where {random.choice(NOUNS)} > {random.randint(1, 900)}"
        case "page":
            return f"https://docs.example.org/{random.choice(NOUNS)}/{random.choice(VERBS)}"
        case _:
            return path(random)


def remark(random: Random, *, chinese: bool) -> str:
    """What an agent says between two calls: it sounds like a finding, and nobody will ask for it."""
    number, name = random.randint(3, 980), random.choice(NOUNS)
    if chinese:
        return random.choice(
            (
                f"接着看下一个{random.choice(ZH)}。",
                f"这里有{number}行{random.choice(ZH)}，看起来和问题没有关系。",
                f"{random.choice(ZH)}的{random.choice(ZH)}正常，继续往下查。",
                f"第{number}行提到{random.choice(ZH)}，但是已经不再使用。",
            )
        )
    return random.choice(
        (
            f"Next I look at {path(random)}.",
            f"The file has {number} lines; nothing in it touches this.",
            f"{path(random)} only wraps the {name}, so I move on.",
            f"Line {number} mentions the {name} but is not reached from here.",
            f"That looks like the {name} I expected, about {number} entries.",
            f"The {name} part was written with {words(random, 3)} in mind and does no harm.",
            f"I check the {name} too, because it shares the {random.choice(NOUNS)}.",
            f"Nothing unusual there: {number} rows, all from the {random.choice(NOUNS)}.",
        )
    )
