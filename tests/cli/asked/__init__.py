"""What is asked beside the words of a command line."""
