"""The corpus through the API: search, images, species, jobs."""
