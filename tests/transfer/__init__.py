"""Tests of transfers from one mesh to another."""
