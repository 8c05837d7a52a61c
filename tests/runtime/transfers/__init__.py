"""Tests of transfers on ranks."""
