"""Runs a program with a given text on its standard input, by replacing itself: the supervisor's own input is in use.

A script with the standard library alone; no module imports it. Arguments: the text, the program and its arguments.
"""

import os
import sys
import tempfile


def main() -> None:
    text, argv = sys.argv[1], sys.argv[2:]
    # An unnamed file, because a pipe would need a process that fills it.
    with tempfile.TemporaryFile() as file:
        file.write(text.encode("utf-8", "surrogateescape"))
        file.seek(0)
        os.dup2(file.fileno(), 0)
    try:
        os.execv(argv[0], argv)  # noqa: S606 - the tool's whole purpose
    except OSError as error:
        sys.stderr.write(f"{argv[0]} could not be started: {error.strerror}\n")
    sys.exit(126)


if __name__ == "__main__":
    main()
