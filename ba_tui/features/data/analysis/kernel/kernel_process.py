"""The program between ba and a kernel: starts it, runs code over Jupyter's protocol, and returns its output.

It runs in a worker process in the kernel's sandbox, so ba itself needs no sockets or event loop of Jupyter. One process
serves one kernel. The kernel's messages are untrusted: ``client`` validates what it uses.
"""

from __future__ import annotations

import base64
import json
import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

from ba_tui.features.data.analysis.kernel.program import TABLE, VARIABLES
from ba_tui.features.data.analysis.kernel.values import files_in
from ba_tui.processes.serving import HandlerFailed, RequestCancelled, WorkerChannel, WorkerRequest

PROGRAM = Path(__file__).with_name("program.py")
READY_SECONDS = 60.0
STOP_SECONDS = 3.0
"""Seconds for an interrupted call to end before the kernel is killed."""
LAST_SECONDS = 20.0
"""Seconds to wait for output after the reply; on a busy machine it may be late."""
TICK = 0.05
REPORT_SECONDS = 0.2
MOST_TEXT = 1_000_000
"""Characters of printed text kept from the beginning of a call, and as many from its end."""
MOST_PARTS = 40
PICTURES = (("image/png", "png"), ("image/jpeg", "jpg"), ("image/svg+xml", "svg"))
LISTING = "__import__('IPython').get_ipython().ba_variables"
DIED, ENDED = "kernel_died", "kernel_ended"

Message: TypeAlias = dict[str, Any]


class Outputs:
    """The output of a call in order: texts, tables and pictures, limited in size."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._room = MOST_TEXT
        self._tail = ""
        self._left_out = 0
        self.parts: list[Message] = []
        self.unsaid = ""
        """Text not yet reported."""

    def text(self, text: str) -> None:
        self.unsaid = (self.unsaid + text)[-4_000:]
        kept, rest = text[: self._room], text[self._room :]
        self._room -= len(kept)
        if kept:
            if self.parts and self.parts[-1]["kind"] == "text":
                self.parts[-1]["text"] += kept
            else:
                self.parts.append({"kind": "text", "text": kept})
        if rest:
            self._tail += rest
            if len(self._tail) > 2 * MOST_TEXT:
                self._left_out += len(self._tail) - MOST_TEXT
                self._tail = self._tail[-MOST_TEXT:]

    def data(self, data: Mapping[str, Any]) -> None:
        """Add a displayed value in its richest supported form."""
        if len(self.parts) >= MOST_PARTS:
            self.text(f"{data.get('text/plain', '')}\n")
        elif TABLE in data:
            self.parts.append({"kind": "table", "table": data[TABLE], "plain": data.get("text/plain", "")})
        elif not self._picture(data):
            self.text(f"{data.get('text/plain', '')}\n")

    def _picture(self, data: Mapping[str, Any]) -> bool:
        for mime, ending in PICTURES:
            if mime in data:
                given = str(data[mime])
                content = given.encode() if ending == "svg" else base64.b64decode(given)
                names = (f"figure-{number}.{ending}" for number in count(1))
                name = next(name for name in names if not os.path.lexists(self._folder / name))
                try:
                    (self._folder / name).write_bytes(content)
                except OSError as error:
                    self.text(f"A picture can't be kept: {error.strerror}.\n")
                    return True
                self.parts.append({"kind": "picture", "file": name})
                return True
        return False

    def all(self) -> list[Message]:
        """Return all parts; the end of truncated output comes last."""
        if not self._tail:
            return self.parts
        end = self._tail[-MOST_TEXT:]
        left = self._left_out + len(self._tail) - len(end)
        note = f"\n[… {left:,} characters left out …]\n" if left else ""
        return [*self.parts, {"kind": "text", "text": note + end}]


class Kernel:
    """The process of one kernel and its sockets. Not thread-safe, except ``alive``."""

    def __init__(self, interpreter: str, folder: Path) -> None:
        place = Path(tempfile.mkdtemp(prefix="ba-k"))
        file = place / "c.json"
        connection = {
            "transport": "ipc",
            "ip": str(place / "s"),
            **{f"{name}_port": number for number, name in enumerate(("shell", "iopub", "stdin", "control", "hb"), 1)},
            "key": uuid4().hex,
            "signature_scheme": "hmac-sha256",
            "kernel_name": "",
        }
        file.touch(mode=0o600)
        file.write_text(json.dumps(connection))
        environment = {name: value for name, value in os.environ.items() if name != "JPY_PARENT_PID"}
        environment |= {"IPYTHONDIR": str(place), "MPLCONFIGDIR": environment.get("MPLCONFIGDIR", str(place / "mpl"))}
        environment["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
        words = (interpreter, str(PROGRAM), str(file), str(folder))
        # In a new session, because an interrupt is sent to the kernel's process group.
        self._process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
        self._connected = False
        # Imported while the kernel starts, which takes as long.
        import zmq  # noqa: PLC0415
        from jupyter_client.client import KernelClient  # noqa: PLC0415

        client: Any = KernelClient(context=zmq.Context())
        client.load_connection_file(str(file))
        self._session: Any = client.session
        identity = client.session.bsession
        self.shell: Any = client.connect_shell(identity=identity)
        self.stdin: Any = client.connect_stdin(identity=identity)
        self.iopub: Any = client.connect_iopub()
        self._control: Any = client.connect_control(identity=identity)
        self._client = client
        self._poller = zmq.Poller()
        for each in (self.shell, self.stdin, self.iopub):
            self._poller.register(each, zmq.POLLIN)

    def connect(self, cancelled: Callable[[], bool]) -> None:
        """Wait, on first use, until the kernel answers. Raises HandlerFailed, RequestCancelled."""
        if self._connected:
            if not self.alive():
                raise HandlerFailed(ENDED, "it ended since the last call")
            return
        self.send("kernel_info_request", {})
        until, heard = time.monotonic() + READY_SECONDS, set[str]()
        # The subscription is active once the kernel's first message arrives on it.
        while not {"kernel_info_reply", "status"} <= heard:
            if cancelled():
                raise RequestCancelled
            if time.monotonic() > until or not self.alive():
                raise HandlerFailed(DIED, json.dumps({"code": self._process.poll(), "starting": True}))
            for socket in self.ready(TICK * 4):
                heard.add(self.receive(socket)["msg_type"])
            if "kernel_info_reply" in heard and "status" not in heard:
                self.send("kernel_info_request", {})
        self._connected = True

    def alive(self) -> bool:
        return self._process.poll() is None

    def died(self) -> HandlerFailed:
        """Return the error for a kernel that has ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        return HandlerFailed(DIED, json.dumps({"code": self._process.poll()}))

    def kill(self) -> None:
        self._process.kill()

    def interrupt(self) -> None:
        """Interrupt by a message: the kernel then signals itself when it is ready for it."""
        self._session.send(self._control, "interrupt_request", {})

    def send(self, kind: str, content: Message) -> str:
        return self._session.send(self.shell, kind, content)["header"]["msg_id"]

    def reply(self, value: str) -> None:
        """Answer the kernel's question on its input channel."""
        self._session.send(self.stdin, "input_reply", {"value": value})

    def ready(self, seconds: float) -> list[Any]:
        """Return the sockets with messages."""
        return [socket for socket, _ in self._poller.poll(int(seconds * 1_000))]

    def receive(self, socket: Any) -> Message:
        return self._session.recv(socket, mode=0)[1]


class KernelHandlers:
    """The methods of the worker. ``run`` and ``variables`` exclude each other; ``answer`` arrives while code runs."""

    def __init__(self, interpreter: str, folder: Path) -> None:
        self._folder = folder
        self._kernel = Kernel(interpreter, folder)
        self._turn = threading.Lock()
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()

    def run(self, request: WorkerRequest) -> object:
        """Run ``code`` for at most ``seconds``; return its output and how it ended."""
        given: Any = request.payload
        with self._turn:
            self._kernel.connect(request.cancelled.is_set)
            before, started = files_in(self._folder), time.monotonic()
            outputs = Outputs(self._folder)
            content = {"code": given["code"], "store_history": True, "allow_stdin": True, "stop_on_error": False}
            expressions = {"user_expressions": {"variables": LISTING}}
            reply, late = self._until_reply(request, content | expressions, outputs, given["seconds"])
            after = files_in(self._folder)
            written = [[name, size] for name, (size, stamp) in after.items() if before.get(name) != (size, stamp)]
            return {
                "parts": outputs.all(),
                "error": _error(reply),
                "late": late,
                "files": sorted(written),
                "seconds": round(time.monotonic() - started, 3),
                "variables": _variables(reply),
            }

    def answer(self, request: WorkerRequest) -> object:
        """Pass an answer to the kernel."""
        self._answers.put(json.dumps(request.payload))
        return None

    def variables(self, request: WorkerRequest) -> object:
        """Return the variables as rows of name, type and shape; None while code runs."""
        if not self._turn.acquire(blocking=False):
            return None
        try:
            self._kernel.connect(request.cancelled.is_set)
            content: Message = {"code": "", "silent": True, "store_history": False, "allow_stdin": False}
            content["user_expressions"] = {"variables": LISTING}
            reply, _ = self._until_reply(request, content, Outputs(self._folder), STOP_SECONDS)
            return _variables(reply)
        finally:
            self._turn.release()

    def _until_reply(
        self, request: WorkerRequest, content: Message, outputs: Outputs, seconds: float
    ) -> tuple[Message, bool]:
        """Return the reply to an execution request, and whether it timed out and was interrupted."""
        kernel = self._kernel
        sent = kernel.send("execute_request", content)
        until, stop_by, reported = time.monotonic() + seconds, 0.0, time.monotonic()
        reply: Message | None = None
        late = idle = False
        while not (reply and idle):
            for socket in kernel.ready(TICK):
                message = kernel.receive(socket)
                if message.get("parent_header", {}).get("msg_id") != sent:
                    continue
                kind, said = message["msg_type"], message["content"]
                if kind == "execute_reply":
                    reply, until = said, time.monotonic() + LAST_SECONDS
                elif kind == "input_request":
                    self._asked(request, said)
                elif kind == "status":
                    idle = said["execution_state"] == "idle"
                else:
                    _show(kind, said, outputs)
            self._answer()
            now = time.monotonic()
            if outputs.unsaid and now - reported > REPORT_SECONDS:
                request.progress({"text": outputs.unsaid})
                outputs.unsaid, reported = "", now
            if reply and now > until:
                outputs.text("\n[Python did not say that its output is whole; some may be missing.]\n")
                idle = True
            elif reply:
                idle = idle or not kernel.alive()
            elif not kernel.alive():
                raise kernel.died()
            elif stop_by and now > stop_by:
                kernel.kill()
                raise HandlerFailed(DIED, json.dumps({"code": None}))
            elif not stop_by and (now > until or request.cancelled.is_set()):
                late = not request.cancelled.is_set()
                stop_by = now + STOP_SECONDS
                kernel.interrupt()
        if request.cancelled.is_set():
            raise RequestCancelled
        return reply, late

    def _asked(self, request: WorkerRequest, said: Message) -> None:
        """Report a question of the kernel: a table to read, its names, or a table to store."""
        while not self._answers.empty():
            self._answers.get()
        try:
            question = json.loads(said["prompt"])
            request.progress({"question": {**question, "need": str(question["need"])}})
        except (ValueError, TypeError, KeyError):
            self._kernel.reply(json.dumps({"error": "This is no question that ba answers."}))

    def _answer(self) -> None:
        with suppress(queue.Empty):
            self._kernel.reply(self._answers.get_nowait())


def _show(kind: str, said: Message, outputs: Outputs) -> None:
    if kind == "stream":
        outputs.text(said["text"])
    elif kind in {"execute_result", "display_data"}:
        outputs.data(said["data"])


def _error(reply: Message) -> Message | None:
    """Return the short and the full traceback of failed code."""
    if reply["status"] == "ok":
        return None
    lines = reply.get("traceback") or [f"{reply.get('ename', 'Error')}: {reply.get('evalue', '')}"]
    return {"name": reply.get("ename", "Error"), "short": lines[0], "full": lines[-1]}


def _variables(reply: Message) -> object:
    found = reply.get("user_expressions", {}).get("variables", {}).get("data", {})
    return found.get(VARIABLES)


def main(channel: WorkerChannel, interpreter: str, folder: str) -> None:
    """Serve requests until the client disconnects."""
    handlers = KernelHandlers(interpreter, Path(folder))
    channel.serve({"run": handlers.run, "answer": handlers.answer, "variables": handlers.variables}, threads=4)
