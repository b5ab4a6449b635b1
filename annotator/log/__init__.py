"""The log: who did what, of what all apps have stored."""
