"""A worker for tests that breaks the rules of the connection: frames that nobody asked for, and none at all."""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path

from ba_tui.processes.serving import FrameKind, WorkerChannel, WorkerRequest


def main(channel: WorkerChannel) -> None:
    """Answer until the client is gone."""

    def frames(request: WorkerRequest) -> object:
        """Send frames of these kinds, each with its value, under the request's number plus so many."""
        for kind, value, more in request.payload:  # type: ignore[attr-defined]
            channel.send(FrameKind[kind], request._id + more, value)
        return "done"

    def raw(request: WorkerRequest) -> object:
        """Send these bytes (as hexadecimal digits) behind the head of a result, and do nothing more."""
        channel._socket.sendall(bytes.fromhex(str(request.payload)))
        time.sleep(600)
        return None

    def hang_up(request: WorkerRequest) -> object:
        """Send nothing more and go on."""
        channel._socket.shutdown(socket.SHUT_WR)
        time.sleep(600)
        return None

    def last_words(request: WorkerRequest) -> object:
        """Reply with so many characters, print a word, and end at once."""
        channel.send(FrameKind.RESULT, request._id, "x" * int(str(request.payload)))
        os.write(1, b"bye\n")
        os._exit(4)

    def break_off(request: WorkerRequest) -> object:
        """Report progress and then send what is no frame, print some words, and end at once."""
        request.progress("last")
        channel._socket.sendall(b"no frame at all, and longer than a head")
        os.write(1, b"these are the last words")
        os._exit(5)

    def print_and_wait(request: WorkerRequest) -> object:
        """Print a word, and wait for what is written into the pipe of that name."""
        os.write(1, b"while it works")
        Path(str(request.payload)).read_text()
        return "done"

    def later(request: WorkerRequest) -> object:
        """Once something is written into the pipe of that name, send a frame that nobody asked for."""
        path = str(request.payload)

        def work() -> None:
            Path(path).read_text()
            channel.send(FrameKind.RESULT, request._id, 1)
            Path(path).write_text("sent")

        threading.Thread(target=work, daemon=True).start()
        return os.getpid()

    def signal_itself(request: WorkerRequest) -> object:
        os.kill(os.getpid(), int(str(request.payload)))
        time.sleep(600)
        return None

    def shut_output(request: WorkerRequest) -> object:
        """Close what is printed to; the process goes on."""
        print("last", flush=True)
        null = os.open(os.devnull, os.O_RDWR)
        for number in (1, 2):
            os.dup2(null, number)
        return None

    channel.serve(
        {
            "echo": lambda request: request.payload,
            "where": lambda request: os.getpid(),
            **{
                each.__name__: each
                for each in (
                    frames,
                    raw,
                    hang_up,
                    last_words,
                    break_off,
                    print_and_wait,
                    later,
                    signal_itself,
                    shut_output,
                )
            },
        },
        threads=2,
    )
