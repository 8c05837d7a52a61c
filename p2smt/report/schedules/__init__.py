"""Schedules: the verdict on one (``schedule_data``), what was synthesized (``synthesis_data``), and
either as a picture (``space_time``)."""
