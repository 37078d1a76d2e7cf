"""The vocabulary: values, events, the loop and the door for faces. Imports nothing of ours and does no I/O."""
