"""Processes: they are started, meet, run a job, and how they fail is explained."""
