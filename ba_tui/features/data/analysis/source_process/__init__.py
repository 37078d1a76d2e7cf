"""The program of the helper process of a source. May import ibis and its drivers; nobody imports it."""
