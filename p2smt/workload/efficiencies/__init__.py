"""How much of a device's peak each framework reaches, as files: fitted to measured runs."""
