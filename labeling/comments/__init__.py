"""Comments on queries and on their images."""
