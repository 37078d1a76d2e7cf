"""A model in a file on this machine, asked through llama.cpp in a helper process.

May import core, settings, resources, processes and the modules of providers beside it; only ``program``, which runs in
the helper, imports xllamacpp.
"""
