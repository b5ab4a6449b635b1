"""Runs: stored, submitted, scored, published."""
