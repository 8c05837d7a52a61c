"""Schedules: the verdict on one (``schedule_data``), and a run of one (``schedule_run``)."""
