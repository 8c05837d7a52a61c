"""Files for launchers, and the launchers themselves."""
