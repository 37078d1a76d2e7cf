"""The vocabulary: values, events, the agent loop and the ports of faces. Imports nothing else of ba_tui and does no
I/O."""
