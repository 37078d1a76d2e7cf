"""The Python kernel of a session: ``client`` is what others use, ``helper`` and ``program`` run in its processes."""
