"""Measures and what they say of runs; pure."""
