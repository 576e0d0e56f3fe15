"""One folder per world; each exports one `WORLD` (see `s2rm_data.world`), found by the folder's name."""
