"""Programs of their own that measure the floors: what the libraries below ba cost. They import no module of ba."""
