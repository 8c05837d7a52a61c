"""Published training runs, and the fit of efficiencies to them."""
