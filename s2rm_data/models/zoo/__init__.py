"""One file a model; each defines its config and MODEL, and is found by its file name."""
