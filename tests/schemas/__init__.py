"""The schemas of files and outputs, against the readers and the commands."""
