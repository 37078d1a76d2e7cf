"""The content of the context window beside the conversation. May import core, settings, resources and resilience."""
