"""What the coordinator keeps: open cubes, how others were closed, and what follows from it."""
