"""Measurements of a served application, each a command of its own; nothing of the product."""
