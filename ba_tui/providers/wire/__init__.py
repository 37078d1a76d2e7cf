"""The formats of both vendors: what is sent, what is made of a stream. May import core, providers.bounds and faults."""
