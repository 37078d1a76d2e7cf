"""Speed, measured by ``python -m tests.bench``. One file a family of figures; floors are taken in the same run."""
