"""`p2smt topology ..`: presets and files shown, checked and written."""
