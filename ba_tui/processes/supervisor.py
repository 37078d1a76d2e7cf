"""Run one program and end all processes it started: on request, when ba is gone, and when the program has ended.

A separate script that loads only the standard library, so that it starts within milliseconds. No module imports it.

Arguments: the number of the status pipe, the folder to start in, limits (``cpu=60,data=4000000000`` or nothing), the
program and its arguments. Standard input is a pipe from ba: any byte, or its end, means stop. Status lines: ``pid N``,
``cwd CODES PATH``, ``left N``, ``over N``, ``exit N``. The program may report exit codes and its last folder on file
descriptor 98. After the status pipe, separated by commas, may follow a socket and a port: a listener on our loopback is
sent back through the socket. The limit ``setid=0`` blocks keyrings and hypervisors, and keeps root from creating files
that run as their owner or group; ``apart=1`` says that all visible processes are the program's. ``stdin=N`` gives the
program a standard input and keeps its standard error separate; ``channel=N`` passes a file descriptor on under the same
number.
"""

import ctypes
import os
import select
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ba_tui.processes.kernel_limits import ProcessWatch


def load_sibling(name: str) -> None:
    """Import a module next to this file under its full name, because a sandbox may hide the folders above."""
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib costs start-up time
    try:
        sys.modules[f"ba_tui.processes.{name}"] = __import__(name)
    finally:
        sys.path.pop()


load_sibling("process_tree")

from ba_tui.processes.process_tree import LINUX, drain, end_all, reap, running, say, threads  # noqa: E402 - loaded above

CWD_FD = 98
SUBREAPER = 36
PDEATHSIG = 1


def adopt() -> "ctypes.CDLL | None":
    """On Linux, make orphans of the command our children, however they detached themselves."""
    if not LINUX:
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(SUBREAPER, 1, 0, 0, 0)
    return libc


def open_listener(link: int, port: int) -> None:
    """Listen on our loopback for a process outside, which accepts the connections."""
    import _socket  # noqa: PLC0415 - half a millisecond, where most commands need none

    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    channel = _socket.socket(fileno=link)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
        channel.sendmsg(
            [b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, listener.fileno().to_bytes(4, sys.byteorder))]
        )
    except OSError:
        pass
    listener.close()
    channel.close()


def start(folder: str, limits: str, argv: "list[str]", libc: "ctypes.CDLL | None") -> "tuple[int, int]":
    """Start the program; return its process id and the pipe on which it may report its last folder."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write_end)
        for name in ("stdin", "channel"):
            if (number := handed(limits, name)) is not None:
                os.close(number)
        return pid, read_end
    try:
        detach(libc)
        os.chdir(folder)
        if (given := handed(limits, "stdin")) is None:
            os.dup2(1, 2)
            # A worker reports no folder, and its channel may have this number.
            if handed(limits, "channel") is None:
                os.dup2(write_end, CWD_FD)
        else:
            os.dup2(given, 0)
            os.close(given)
        if limits:
            limit(limits, libc)
        os.execv(argv[0], argv)  # noqa: S606 - the tool's whole purpose
    except (OSError, ValueError) as error:
        os.write(2, f"The command could not be started: {getattr(error, 'strerror', None) or error}\n".encode())
    os._exit(126)


def handed(limits: str, name: str) -> "int | None":
    """Return the file descriptor that ``limits`` pass to the program under this name."""
    return next((int(item.partition("=")[2]) for item in limits.split(",") if item.startswith(f"{name}=")), None)


def detach(libc: "ctypes.CDLL | None") -> None:
    """In the child: start a session that ends with the supervisor, reset signals, and close standard input."""
    os.setsid()
    if libc is not None:
        libc.prctl(PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


def limit(limits: str, libc: "ctypes.CDLL | None" = None) -> None:
    """Set ``limits`` for this process and its descendants, never above existing ones."""
    import resource  # noqa: PLC0415 - not every program is limited

    for item in limits.split(","):
        name, _, value = item.partition("=")
        if name == "setid" and libc is not None and LINUX:
            load_sibling("kernel_limits")
            from ba_tui.processes.kernel_limits import refuse_calls  # noqa: PLC0415 - loaded above

            refuse_calls(libc, setid=os.getuid() == 0)
        number = getattr(resource, f"RLIMIT_{name.upper()}", None)
        if number is None:
            continue
        wanted = int(value)
        if name == "nproc":
            # This limit counts all processes of the user, so add those that run already.
            running = threads()
            if not running:
                continue
            wanted += running
        hard = resource.getrlimit(number)[1]
        wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        last = wanted + 5 if name == "cpu" and hard == resource.RLIM_INFINITY else wanted
        resource.setrlimit(number, (wanted, last))


def process_watch(limits: str) -> "ProcessWatch | None":
    """Return a process counter for root, to whom the kernel's limit does not apply."""
    if "nproc" not in limits or not LINUX or os.getuid() != 0:
        return None
    load_sibling("kernel_limits")
    from ba_tui.processes.kernel_limits import ProcessWatch  # noqa: PLC0415 - loaded above

    return ProcessWatch(limits)


def last_folder(pipe: int) -> str:
    """Return the report of the program, if any."""
    os.set_blocking(pipe, False)
    try:
        return os.read(pipe, 8192).split(b"\n", 1)[0].decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def noticed(number: int, frame: object) -> None:
    """Do nothing: SIGCHLD needs a handler for the wake-up pipe to be written."""


def prepare() -> "tuple[int, ctypes.CDLL | None]":
    """Before the fork: ignore ending signals, and return a pipe that is written when a child has ended."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    wake, wake_write = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(wake_write, False)
    signal.signal(signal.SIGCHLD, noticed)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    return wake, adopt()


def mute() -> None:
    """After the fork: close our copies of the output, so that its reader sees the end when the program closes it."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)


def main() -> None:
    (status, *proxy), folder, limits, argv = map(int, sys.argv[1].split(",")), sys.argv[2], sys.argv[3], sys.argv[4:]
    os.set_inheritable(status, False)
    if proxy:
        open_listener(*proxy)
    wake, libc = prepare()
    pid, cwd_pipe = start(folder, limits, argv, libc)
    mute()
    say(status, f"pid {pid}")
    watch = process_watch(limits)
    while True:
        ready, _, _ = select.select([0, wake], [], [], watch.WAIT if watch else None)
        drain(wake)
        if watch and watch.over():
            say(status, f"over {watch.most}")
            watch.end(status)
        code, more = reap(pid)
        if code is not None:
            say(status, f"cwd {last_folder(cwd_pipe)}")
            say(status, f"left {len(running(pid, status)) if more else 0}")
            say(status, f"exit {code}")
            break
        if 0 in ready:
            break
    end_all(pid, status, wake)


if __name__ == "__main__":
    main()
