"""Runs: kept, submitted, scored, shown to whom they are for."""
