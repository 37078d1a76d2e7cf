"""The skills that ship with ba: each script as a process with real files, each skill through the program."""
