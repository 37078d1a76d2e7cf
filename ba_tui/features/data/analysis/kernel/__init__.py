"""The Python kernel of a session. Others import ``client``, ``tables``, ``values`` and ``files``; ``kernel_process``
and ``program`` run in its processes."""
