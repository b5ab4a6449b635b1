"""Invented natural-world scenes: their collection, their queries and a model for them."""
