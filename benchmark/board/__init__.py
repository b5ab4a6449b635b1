"""The leaderboard, the pages of runs and their comparisons."""
