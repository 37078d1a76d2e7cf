"""Runs Python code like an interactive prompt: prints the value of a last expression, and tracebacks of that code only.

A script for the interpreter of any project (3.8 and later) with the standard library alone; no module imports it. Its
argument is the code, which runs as ``__main__`` in the current folder.
"""

import ast
import linecache
import os
import sys
import traceback
import types

NAME = "<code>"


def main() -> None:
    code = sys.argv[1]
    folder = os.getcwd()  # noqa: PTH109 - pathlib costs start-up time
    # As with ``python -c``: modules are found in the folder, not next to this script.
    if sys.path[:1] == [os.path.dirname(os.path.abspath(__file__))]:  # noqa: PTH100, PTH120 - as above
        sys.path[0] = ""
    sys.argv[:] = [""]
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    linecache.cache[NAME] = (len(code), None, code.splitlines(keepends=True), NAME)
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    try:
        run(code, module.__dict__)
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it raises is what is to be shown
        failed = 130 if isinstance(error, KeyboardInterrupt) else 1
        show(error, folder)
    else:
        return
    sys.exit(failed)


def run(code: str, names: "dict[str, object]") -> None:
    tree = ast.parse(code, NAME)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    # No compiler flags of this script apply.
    exec(compile(tree, NAME, "exec", dont_inherit=True), names)  # noqa: S102 - the tool's whole purpose
    if isinstance(last, ast.Expr):
        expression = compile(ast.Expression(last.value), NAME, "eval", dont_inherit=True)
        value: object = eval(expression, names)  # noqa: S307 - as above
        sys.displayhook(value)


def show(error: BaseException, folder: str) -> None:
    """Print the traceback without frames of this script and of libraries."""
    sys.stdout.flush()
    try:
        shown = traceback.TracebackException.from_exception(error)
        shorten(shown, folder, set())
        text = "".join(shown.format())
    except Exception:  # noqa: BLE001 - an exception that can't be shown is still one
        text = f"{type(error).__name__}\n"
    sys.stderr.write(text)


def shorten(shown: "traceback.TracebackException", folder: str, done: "set[int]") -> None:
    if id(shown) in done:
        return
    done.add(id(shown))
    shown.stack[:] = [frame for frame in shown.stack if own(frame.filename, folder)]
    others = [shown.__cause__, shown.__context__, *(getattr(shown, "exceptions", None) or ())]
    for other in others:
        if other is not None:
            shorten(other, folder, done)


def own(filename: str, folder: str) -> bool:
    """Return whether a frame belongs to the given code or the project, and not to an installed library."""
    inside = os.path.abspath(filename).startswith(os.path.join(folder, ""))  # noqa: PTH100, PTH118 - as in main
    return filename == NAME or (inside and "site-packages" not in filename and "dist-packages" not in filename)


if __name__ == "__main__":
    main()
