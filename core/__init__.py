"""What every app needs, and what knows no domain."""

__version__ = "0.2.0"
