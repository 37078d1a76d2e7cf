"""Connections to models, one module for each vendor, and counts of tokens. May import core, settings, resources and
processes; of local models only ``local_program``, which runs in a helper process, imports xllamacpp.
"""
