"""Ways to models, one file a vendor. May import core, settings, resources and resilience; no capability, no face."""
