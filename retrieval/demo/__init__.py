"""Invented natural-world scenes, their corpus, their queries and the small model trained on them."""
