"""Files and texts of rank orders."""
