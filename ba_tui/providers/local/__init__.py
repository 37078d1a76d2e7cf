"""Models in files on this machine, run by llama.cpp in a helper process.

May import core, settings, resources, processes and the modules of providers; only ``program``, which runs in the
helper, imports xllamacpp.
"""
