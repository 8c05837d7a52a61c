"""What is asked beside the words of a command line: abbreviations told, and defaults from files."""
