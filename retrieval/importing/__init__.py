"""Readers of data sets: they take files and yield records, and know no database."""
