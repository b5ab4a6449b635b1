"""Asking a multimodal model whether an image shows what a query says."""
