"""What an answer rests on, for a person and as data."""
