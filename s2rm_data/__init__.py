"""Generate, store, train on and evaluate the partially observed worlds of *Spatially Structured Recurrent Modules*."""

__version__ = "0.1.0"
