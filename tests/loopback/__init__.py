"""A real HTTP model server on loopback that follows a script; for tests of every room and for the bench.

    with ModelServer([Step(say="Hello"), Status(529), Answer(Step(say="Bye"), cut=0.5)]) as server:
        AnthropicProvider(model, api_key=BoundKey("k", server.url), base_url=server.url)          # speaks Messages
        OpenAIProvider(model, base_url=server.openai_url)                   # speaks Chat Completions
        server.requests[0].json["messages"]

``python -m tests.loopback --script FILE.yaml`` runs it on its own and prints its URL.
"""

from tests.loopback.replies import Answer, Raw, Status
from tests.loopback.server import ModelServer, Seen

__all__ = ["Answer", "ModelServer", "Raw", "Seen", "Status"]
