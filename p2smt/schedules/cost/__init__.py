"""Predicted time of a schedule on a topology, event by event (docs/schedule-cost.md)."""
