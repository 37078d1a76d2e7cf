"""The Python kernel of a session: ``client`` and ``values`` for ba, ``kernel_process`` and ``program`` for the helper
process and the kernel. May import core, processes and the engine's client.
"""
