"""The program of a kernel: IPython with the session's tables. ``kernel_process`` starts it.

It runs in any Python that has ipykernel, maybe the project's, so it imports nothing of ba; ba imports its constants.
Arguments: the connection file, the folder for files. Its messages about tables, variables and errors are untrusted;
``values`` validates them.
"""

from __future__ import annotations

import ast
import builtins
import getpass
import itertools
import json
import linecache
import math
import os
import sys
import threading
import time
import traceback
from datetime import date, datetime
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, cast

TABLE = "application/vnd.ba.table+json"
VARIABLES = "application/vnd.ba.variables+json"
ROWS, COLUMNS, CELL = 50, 200, 500
"""Most rows, columns, and characters of a cell in a displayed table."""
NAMES = 500
"""Most listed variables."""
FRAMES = 6
"""Most frames of a short traceback."""
LINE, MESSAGE = 300, 2_000
KEPT = ".kept"
RETRY = 0.01
"""Seconds between two attempts to ask ba."""
FRAME_TYPES = (
    ("pandas.core.frame", "DataFrame"), ("pandas.core.series", "Series"), ("pandas", "DataFrame"),
    ("pandas", "Series"), ("polars.dataframe.frame", "DataFrame"), ("polars.series.series", "Series"),
)  # fmt: skip
CHART_TYPES = (("altair.vegalite.v5.api", "TopLevelMixin"), ("altair.vegalite.v6.api", "TopLevelMixin"))


class TableError(LookupError):
    """A table can't be read or stored; the message says why and what to do."""


class KeptHandle(str):
    """The handle of a stored table; displaying it shows the first rows."""

    __slots__ = ("frame",)
    frame: Any

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {TABLE: {**described(self.frame), "handle": str(self)}, "text/plain": str(self)}


class KernelSession:
    """The tables of the session for Python code: ``ba.table("R1")``, ``ba.keep(df, "name")``, ``ba.tables()``."""

    def __init__(self, kernel: Any, folder: Path) -> None:
        self._kernel = kernel
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self.folder = folder

    def __repr__(self) -> str:
        return f"ba: table(name), keep(frame, name), tables(), folder = {str(self.folder)!r}"

    def table(self, name: str, columns: Any = None, library: str = "") -> Any:
        """Return the table ``name`` of the session (R1, sales) as a DataFrame; ``columns`` names those to read.
        ``library``: "pandas" or "polars"; by default pandas where it is installed.

        Raises:
            LookupError: there is no such table, or it is too large; says what to do.
        """
        wanted = None if columns is None else [str(each) for each in columns]
        used = library or ("pandas" if installed("pandas") else "polars")
        if used not in {"pandas", "polars"} or not installed(used):
            raise TableError(f"{used} is not installed in this Python.")
        file = self._ask({"need": "table", "name": str(name), "columns": wanted})["file"]
        return read_frame(file, wanted, used)

    def keep(self, frame: Any, name: str = "") -> str:
        """Keep ``frame`` as the next result of the session, which SQL and the grid read, and return its handle."""
        if type(frame).__name__ == "Series":
            frame = frame.to_frame()
        folder = self.folder / KEPT
        folder.mkdir(exist_ok=True)
        file = folder / f"{os.getpid()}-{next(self._numbers)}.parquet"
        try:
            write_frame(frame, file)
            about = {"name": str(name), "engine": version_of(frame), "rows": len(frame)}
            reply = self._ask({"need": "keep", "file": file.name, **about})
        finally:
            file.unlink(missing_ok=True)
        handle = KeptHandle(reply["handle"])
        handle.frame = frame
        return handle

    def tables(self) -> list[str]:
        """Return the names of all tables of the session."""
        return list(self._ask({"need": "tables"})["names"])

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            reply = json.loads(self._put(json.dumps(question)))
        if "error" in reply:
            raise TableError(reply["error"])
        return reply

    def _put(self, question: str) -> str:
        """Ask ba and return the answer. In a new kernel, the first question may come before ba's input channel is
        connected."""
        zmq = module("zmq")
        while True:
            try:
                return self._kernel.raw_input(question)
            except zmq.ZMQError as error:
                if error.errno != zmq.EHOSTUNREACH:
                    raise
                time.sleep(RETRY)


def module(name: str) -> Any:
    """Import a module that may be missing or is not needed at the start."""
    return import_module(name)


def installed(name: str) -> bool:
    return name in sys.modules or find_spec(name) is not None


def read_frame(file: str, columns: list[str] | None, library: str) -> Any:
    """Read a Parquet file with an installed library."""
    if library == "polars":
        return module("polars").read_parquet(file, columns=columns)
    if installed("duckdb"):
        names = "*" if columns is None else ", ".join('"' + each.replace('"', '""') + '"' for each in columns)
        with module("duckdb").connect() as connection:
            connection.execute("SET threads = 2")
            return connection.execute(f"SELECT {names} FROM read_parquet(?)", [file]).df()
    return module("pandas").read_parquet(file, columns=columns)


def write_frame(frame: Any, file: Path) -> None:
    """Write a DataFrame as Parquet. Raises TableError for other values."""
    library = type(frame).__module__.partition(".")[0]
    if library == "polars" and hasattr(frame, "write_parquet"):
        frame.write_parquet(file)
        return
    if library != "pandas" or not hasattr(frame, "columns"):
        raise TableError(f"ba.keep takes a DataFrame of pandas or polars, not {type(frame).__name__}.")
    frame = with_index(frame)
    if len(set(map(str, frame.columns))) < len(frame.columns):
        raise TableError("Two columns have the same name; rename one of them first.")
    if installed("duckdb"):
        with module("duckdb").connect() as connection:
            connection.execute("SET threads = 2")
            connection.register("kept", frame.rename(columns=str))
            path = str(file).replace("'", "''")
            connection.execute(f"COPY kept TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
        return
    frame.rename(columns=str).to_parquet(file, index=False)


def with_index(frame: Any) -> Any:
    """Return ``frame`` with its index as columns, except a plain row number, and single-level column names."""
    if frame.columns.nlevels > 1:
        frame = frame.set_axis([" ".join(map(str, each)).strip() for each in frame.columns], axis=1)
    if type(frame.index).__name__ == "RangeIndex":
        return frame.reset_index(drop=True)
    names = [name if name is not None else f"index{number or ''}" for number, name in enumerate(frame.index.names)]
    return frame.rename_axis(index=names).reset_index(allow_duplicates=True)


def version_of(frame: Any) -> str:
    name = type(frame).__module__.partition(".")[0]
    python = ".".join(map(str, sys.version_info[:3]))
    return f"Python {python}, {name} {getattr(sys.modules.get(name), '__version__', '')}".strip()


# Display of values


def described(frame: Any) -> dict[str, Any]:
    """Return the first rows of a frame as JSON, with column types and the size of the whole."""
    total, kind = len(frame), type(frame).__name__
    head = frame.head(ROWS)
    if kind == "Series":
        head = head.to_frame()
    if type(frame).__module__.startswith("pandas"):
        index = head.index
        plain = type(index).__name__ == "RangeIndex"
        width = len(head.columns)
        head = with_index(head.iloc[:, :COLUMNS])
        names, types = [str(each) for each in head.columns], [str(each) for each in head.dtypes]
        rows = [[cell(value) for value in row] for row in head.itertuples(index=False, name=None)]
        width += len(names) - min(width, COLUMNS) if not plain else 0
    else:
        width = head.width
        head = head[:, :COLUMNS]
        names, types = list(head.columns), [str(each) for each in head.dtypes]
        rows = [[cell(value) for value in row] for row in head.iter_rows()]
    return {"kind": kind, "columns": names, "types": types, "rows": rows, "total": total, "width": width}


def cell(value: Any) -> Any:
    """Return a value as a JSON type, by default as text."""
    item = getattr(value, "item", None)
    if callable(item) and type(value).__module__.startswith("numpy"):
        value = item()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    if type(value).__name__ in {"NaTType", "NAType"}:
        return None
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    return clipped(value.isoformat() if isinstance(value, date) else str(value), CELL)


def clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def frame_bundle(frame: Any, *_: Any, **__: Any) -> dict[str, Any]:
    return {TABLE: described(frame)}


def chart_picture(chart: Any) -> bytes | None:
    """Return an Altair chart as PNG; None when the package that renders it is missing."""
    if not installed("vl_convert"):
        return None
    file = BytesIO()
    chart.save(file, format="png")
    return file.getvalue()


class VariableList:
    """The user's variables; the client evaluates it as an expression."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        hidden = self._shell.user_ns_hidden
        found = [
            [name, type(value).__name__, shape_of(value)]
            for name, value in list(self._shell.user_ns.items())
            if name not in hidden
            and not name.startswith("_")
            and not isinstance(value, ModuleType | FunctionType | BuiltinFunctionType | type | KernelSession)
        ]
        return {VARIABLES: found[:NAMES]}


def shape_of(value: Any) -> str:
    """Return the size of a variable in a few characters, or its value if that is short."""
    try:
        shape = getattr(value, "shape", None)
        if isinstance(shape, tuple):
            return " × ".join(f"{each:,}" for each in cast("tuple[Any, ...]", shape))
        if value is None or isinstance(value, bool | int | float | complex):
            return clipped(repr(value), 40)
        if isinstance(value, str | bytes):
            return clipped(repr(value), 40) if len(value) < 1_000 else f"{len(value):,} characters"
        return f"{len(value):,} items"
    except Exception:
        return ""


# Errors


def short_traceback(error: BaseException) -> str:
    """Return the frames of cells and the innermost one, then the error."""
    said = clipped("".join(traceback.format_exception_only(error)).strip(), MESSAGE)
    if isinstance(error, SyntaxError):
        return said.replace(f'File "{error.filename}"', "cell") if is_cell(error.filename or "") else said
    found = traceback.extract_tb(error.__traceback__)
    frames = [each for each in found if "IPython" not in each.filename and each.filename != __file__]
    own = [each for each in frames if is_cell(each.filename)]
    shown = own[-FRAMES:]
    if frames and frames[-1] not in shown:
        shown = [*shown, frames[-1]]
    lines = [] if len(own) <= FRAMES else [f"[{len(own) - FRAMES} outer frames left out]"]
    for each in shown:
        place = "cell" if is_cell(each.filename) else each.filename
        line = each.line or linecache.getline(each.filename, each.lineno or 0).strip()
        inside = "" if each.name.startswith("<") else f", in {each.name}"
        lines.append(clipped(f"{place}, line {each.lineno}{inside}: {line}", LINE))
    return "\n".join([*lines, said])


def is_cell(file: str) -> bool:
    return "ipykernel_" in file


# Table names in code


def missing_names(code: str, known: Any) -> list[str]:
    """Return the names, in order, that ``code`` reads without setting them and ``known`` does not define."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return []
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    stored = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    bound = {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)}
    bound |= {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.ClassDef)}
    read = dict.fromkeys(node.id for node in names if isinstance(node.ctx, ast.Load))
    return [name for name in read if name not in known and name not in stored | bound and not hasattr(builtins, name)]


def no_input(*_: Any, **__: Any) -> str:
    raise EOFError("No user can type an input here; put the value into the code.")


def set_up(shell: Any, session: KernelSession) -> None:
    """Set up the shell: the object ``ba``, the display of frames and charts, and tables as plain names."""
    shell.push({"ba": session}, interactive=False)
    shell.ba_variables = VariableList(shell)
    formatter = shell.display_formatter
    formatter.active_types = ["text/plain", "image/png", "image/jpeg", "image/svg+xml"]
    for place, name in FRAME_TYPES:
        formatter.mimebundle_formatter.for_type_by_name(place, name, frame_bundle)
    for place, name in CHART_TYPES:
        formatter.formatters["image/png"].for_type_by_name(place, name, chart_picture)

    def before(info: Any) -> None:
        builtins.input = getpass.getpass = no_input
        if missing := missing_names(info.raw_cell, shell.user_ns):
            try:
                tables = set(session.tables())
                shell.user_ns.update({name: session.table(name) for name in missing if name in tables})
            except TableError as error:
                sys.stderr.write(f"{error}\n")

    shell.events.register("pre_run_cell", before)


def main() -> None:
    connection, folder = sys.argv[1:]
    sys.argv[1:] = []
    # User code must not import modules from the folder of this script.
    sys.path.pop(0)

    class Shell(module("ipykernel.zmqshell").ZMQInteractiveShell):
        """Shows each error twice: short and in full."""

        def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
            full = "\n".join(line for line in "\n".join(stb).splitlines() if line.strip())
            shell: Any = super()
            shell._showtraceback(etype, evalue, [short_traceback(evalue), full])

    class Kernel(module("ipykernel.ipkernel").IPythonKernel):
        shell_class = Shell

    settings = module("traitlets.config").Config()
    settings.IPKernelApp.quiet = True
    settings.HistoryManager.enabled = False
    settings.InteractiveShell.colors = "nocolor"
    settings.InteractiveShell.cache_size = 0
    settings.InteractiveShell.automagic = False
    settings.InteractiveShell.xmode = "Plain"
    settings.Completer.use_jedi = False
    app = module("ipykernel.kernelapp").IPKernelApp.instance(
        kernel_class=Kernel, connection_file=connection, config=settings
    )
    app.initialize([])
    # Otherwise a question to a channel that is not connected yet would be dropped and never answered.
    app.kernel.stdin_socket.setsockopt(module("zmq").ROUTER_MANDATORY, 1)
    session = KernelSession(app.kernel, Path(folder))
    set_up(app.shell, session)
    app.start()


if __name__ == "__main__":
    main()
