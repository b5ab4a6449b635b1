"""Two-stage runs: a first stage's images in a second model's order."""
