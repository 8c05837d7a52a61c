"""Tests of schedules: readers, checker and classics, against an exhaustive oracle."""
