"""The wire formats of both vendors: encoding of requests, parsing of streams. May import core and providers.faults."""
