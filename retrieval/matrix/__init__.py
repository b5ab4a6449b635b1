"""A packed copy of a model's vectors, mapped into memory: an exact ranking at the memory's speed.

PostgreSQL is the only source. Under VAR_DIR/matrices each model has a folder of files that are
written once (`files`); a manifest says what they hold of which moment of the database. Each time
it is used, one statement (`state`) tells whether that is still so: how many embeddings there are
and a sum over them, which came since, which were removed. What doesn't fit isn't used, and the
database's own scan answers.
"""
