"""One file per model; each defines its config and MODEL, and is found by its file name."""
