"""Pages: what they say, and what they keep out."""
