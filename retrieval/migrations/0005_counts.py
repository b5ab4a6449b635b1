import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models

# How many images each species has: changed once a statement, however many rows it writes, COPY too. The row of
# the whole corpus is taken first, so that no two writers of images wait for each other in a circle. What changes
# neither number nor species (a file that is read, a licence that is mended) takes no lock at all.
WRITTEN = """
CREATE FUNCTION retrieval_images_{name}() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    species bigint[];
    changes bigint[];
    total bigint;
BEGIN
    SELECT array_agg(species_id ORDER BY species_id) FILTER (WHERE species_id IS NOT NULL),
           array_agg(change ORDER BY species_id) FILTER (WHERE species_id IS NOT NULL),
           sum(change)
      INTO species, changes, total
      FROM (SELECT species_id, sum(change)::bigint AS change FROM ({rows}) each_row
             GROUP BY species_id HAVING sum(change) <> 0) changed;
    IF total IS NULL THEN
        RETURN NULL;
    END IF;
    INSERT INTO retrieval_corpuscount AS c (id, images) VALUES (1, greatest(total, 0))
        ON CONFLICT (id) DO UPDATE SET images = c.images + total;
    UPDATE retrieval_speciescount c SET images = c.images + d.change
      FROM unnest(species, changes) d (species_id, change)
     WHERE c.species_id = d.species_id AND d.change < 0;
    INSERT INTO retrieval_speciescount AS c (species_id, images)
    SELECT species_id, change FROM unnest(species, changes) d (species_id, change) WHERE change > 0
        ON CONFLICT (species_id) DO UPDATE SET images = c.images + excluded.images;
    RETURN NULL;
END
$$;
CREATE TRIGGER retrieval_images_{name} AFTER {event} ON retrieval_image
    REFERENCING {tables} FOR EACH STATEMENT EXECUTE FUNCTION retrieval_images_{name}();
"""
NEW = "SELECT species_id, 1 AS change FROM new_rows"
OLD = "SELECT species_id, -1 AS change FROM old_rows"
TRIGGERS = [
    WRITTEN.format(name="added", event="INSERT", rows=NEW, tables="NEW TABLE AS new_rows"),
    WRITTEN.format(name="removed", event="DELETE", rows=OLD, tables="OLD TABLE AS old_rows"),
    WRITTEN.format(
        name="changed",
        event="UPDATE",
        rows=f"{NEW} UNION ALL {OLD}",
        tables="NEW TABLE AS new_rows OLD TABLE AS old_rows",
    ),
    """
CREATE FUNCTION retrieval_images_emptied() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM retrieval_speciescount;
    DELETE FROM retrieval_corpuscount;
    RETURN NULL;
END
$$;
CREATE TRIGGER retrieval_images_emptied AFTER TRUNCATE ON retrieval_image
    FOR EACH STATEMENT EXECUTE FUNCTION retrieval_images_emptied();
""",
]
# The triggers' lock keeps writers of images out until this transaction ends.
FILL = """
INSERT INTO retrieval_corpuscount (id, images)
SELECT 1, count(*) FROM retrieval_image HAVING count(*) > 0;
INSERT INTO retrieval_speciescount (species_id, images)
SELECT species_id, count(*) FROM retrieval_image WHERE species_id IS NOT NULL GROUP BY species_id;
"""
GONE = "".join(
    f"DROP TRIGGER retrieval_images_{name} ON retrieval_image;\nDROP FUNCTION retrieval_images_{name}();\n"
    for name in ("added", "removed", "changed", "emptied")
)


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0004_embedding_changes")]

    operations = [
        migrations.CreateModel(
            name="CorpusCount",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("images", models.PositiveBigIntegerField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="corpus_count_one")
                ],
            },
        ),
        migrations.CreateModel(
            name="SpeciesCount",
            fields=[
                (
                    "species",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="counted",
                        serialize=False,
                        to="retrieval.species",
                    ),
                ),
                ("images", models.PositiveBigIntegerField()),
            ],
        ),
        migrations.AlterField(
            model_name="image",
            name="species",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="images",
                to="retrieval.species",
            ),
        ),
        migrations.AddIndex(
            model_name="image",
            index=models.Index(fields=["species", "id"], name="image_species"),
        ),
        migrations.AddIndex(
            model_name="image",
            index=django.contrib.postgres.indexes.BrinIndex(
                autosummarize=True, fields=["created_at"], name="image_created"
            ),
        ),
        migrations.RunSQL("\n".join(TRIGGERS) + FILL, GONE),
    ]
