"""How well memory finds what was said: cases, and what is found of them. Tests only."""

import os

# Threads of the matrix library only wait for each other where vectors are this small. Read when numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
