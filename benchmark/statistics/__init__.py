"""A release in pictures."""
