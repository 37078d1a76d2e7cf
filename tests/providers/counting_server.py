"""A server on loopback that counts tokens as Anthropic's endpoint does: always the same, or not at all."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class CountingServer:
    """Answers with ``tokens`` while ``status`` is 200; keeps what was asked."""

    def __init__(self, tokens: object = 777) -> None:
        self.tokens = tokens
        self.status = 200
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.keys: list[str] = []
        self.headers: list[str] = []
        self.release: threading.Event | None = None
        outer = self

        class Answers(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.bodies.append(json.loads(body))
                outer.paths.append(self.path)
                outer.headers += self.headers.keys()
                outer.keys.append(self.headers.get("x-api-key", ""))
                if outer.release:
                    outer.release.wait(10)
                error = {"type": "error", "error": {"type": "api_error", "message": "not now"}}
                answer = json.dumps({"input_tokens": outer.tokens} if outer.status == 200 else error).encode()
                self.send_response(outer.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.release:
            self.release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
