"""Where cubes are closed: in this process, in others of this machine, on a cluster."""
