"""Files that no honest program writes, given to every command that reads one."""
