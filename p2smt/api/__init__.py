"""What is public and stands on several packages: files in and out, verification, runs,
calibration.

Import these names from ``p2smt`` itself.
"""
