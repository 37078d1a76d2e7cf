"""The vocabulary: values, events, the loop and what faces are given. Imports nothing of ours and does no I/O."""
