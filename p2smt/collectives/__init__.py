"""Collectives: names, start and goal of requests (``demand``) and of schedules (``contract``)."""
