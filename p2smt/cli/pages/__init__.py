"""Commands that show a file to people."""
