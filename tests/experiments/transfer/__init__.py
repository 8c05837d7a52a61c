"""Tests of the study of transfers."""
