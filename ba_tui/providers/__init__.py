"""Ways to models, one file a vendor. May import core and resilience; never a capability or a face."""
