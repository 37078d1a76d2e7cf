"""What comes of a server, from the types of the SDK to ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import mcp_types as types

from ba_tui.core.ports.mcp import PromptArgument, RemotePrompt, RemoteResource
from ba_tui.core.text.wording import one_line
from ba_tui.features.mcp.client.definitions import plain_text
from ba_tui.features.mcp.client.values import RemotePart

TEXT_CHARS = 300


def part(block: types.ContentBlock) -> RemotePart:
    """Return a block of a result."""
    match block:
        case types.TextContent(text=text):
            return RemotePart("text", text)
        case types.ImageContent(data=data, mime_type=kind):
            return RemotePart("image", data=data, media_type=kind)
        case types.AudioContent(data=data, mime_type=kind):
            return RemotePart("audio", data=data, media_type=kind)
        case types.EmbeddedResource(resource=resource):
            return contents(resource)
        case types.ResourceLink(uri=uri, name=name, description=about, mime_type=kind):
            text = f"{name}: {about}" if about else name
            return RemotePart("link", text, media_type=kind or "", uri=str(uri))


def contents(resource: types.TextResourceContents | types.BlobResourceContents) -> RemotePart:
    """Return what a resource holds."""
    kind, uri = resource.mime_type or "", str(resource.uri)
    if isinstance(resource, types.TextResourceContents):
        return RemotePart("resource", resource.text, media_type=kind, uri=uri)
    return RemotePart("resource", data=resource.blob, media_type=kind, uri=uri)


def spoken(message: types.PromptMessage) -> RemotePart:
    """Return a message of a prompt, with whose words it is."""
    return replace(part(message.content), speaker=message.role)


def _line(text: str | None) -> str:
    return one_line(plain_text(text or "", TEXT_CHARS)[0], TEXT_CHARS)


def resource(each: types.Resource) -> RemoteResource:
    """Return a resource of a listing."""
    name, about = _line(each.title or each.name), _line(each.description)
    return RemoteResource(str(each.uri), name, about, each.mime_type or "", each.size)


def template(each: types.ResourceTemplate) -> RemoteResource:
    """Return a resource whose address has parts to fill in."""
    name, about = _line(each.title or each.name), _line(each.description)
    return RemoteResource(each.uri_template, name, about, each.mime_type or "", template=True)


def prompt(each: types.Prompt) -> RemotePrompt:
    """Return a prompt of a listing."""
    args: Sequence[types.PromptArgument] = each.arguments or ()
    named = tuple(PromptArgument(arg.name, _line(arg.description), bool(arg.required)) for arg in args)
    return RemotePrompt(each.name, _line(each.description or each.title), named)
