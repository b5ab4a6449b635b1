"""From the world's archives to a corpus.

Reads archives, filters, samples and splits them, and writes the files that `import_images` reads.
Works in DuckDB and knows neither Django's models nor PostgreSQL.
"""
