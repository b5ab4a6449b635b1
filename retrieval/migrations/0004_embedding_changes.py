import django.contrib.postgres.functions
import django.db.models.deletion
from django.db import migrations, models

# What a packed copy of the vectors is checked against: how many embeddings a model has and a sum over them, and
# which were removed. A statement's triggers fire for the table that it names, so that the parent and each
# partition have them; `retrieval_embedding_watch` sets them.
WATCH = """
CREATE FUNCTION retrieval_embedding_mark(image_id bigint, created_at timestamp with time zone)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN timestamp_hash_extended(created_at AT TIME ZONE 'UTC', image_id);

CREATE FUNCTION retrieval_embedding_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO retrieval_embeddingcount AS known (model_id, embedded, fingerprint)
    SELECT model_id, count(*), sum(retrieval_embedding_mark(image_id, created_at))
    FROM changed GROUP BY model_id ORDER BY model_id
    ON CONFLICT (model_id) DO UPDATE SET
        embedded = known.embedded + EXCLUDED.embedded,
        fingerprint = known.fingerprint + EXCLUDED.fingerprint;
    RETURN NULL;
END $$;

CREATE FUNCTION retrieval_embedding_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO retrieval_embeddingremoval (model_id, image_id, embedded_at, xid)
    SELECT model_id, image_id, created_at, pg_current_xact_id()::text::bigint
    FROM changed ORDER BY model_id, image_id;
    UPDATE retrieval_embeddingcount AS known SET
        embedded = known.embedded - gone.embedded,
        fingerprint = known.fingerprint - gone.fingerprint
    FROM (
        SELECT model_id, count(*) AS embedded,
               sum(retrieval_embedding_mark(image_id, created_at)) AS fingerprint
        FROM changed GROUP BY model_id
    ) gone
    WHERE known.model_id = gone.model_id;
    RETURN NULL;
END $$;

CREATE FUNCTION retrieval_embedding_emptied() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE retrieval_embeddingcount SET embedded = 0, fingerprint = 0
    WHERE model_id = TG_ARGV[0]::bigint;
    RETURN NULL;
END $$;

CREATE FUNCTION retrieval_embedding_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'An embedding is never changed: delete it and store another.'
        USING ERRCODE = 'restrict_violation';
END $$;

CREATE FUNCTION retrieval_embedding_watch(watched regclass, model_id bigint DEFAULT NULL)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'CREATE TRIGGER embedding_added AFTER INSERT ON %s REFERENCING NEW TABLE AS changed '
        'FOR EACH STATEMENT EXECUTE FUNCTION retrieval_embedding_added()', watched);
    EXECUTE format(
        'CREATE TRIGGER embedding_removed AFTER DELETE ON %s REFERENCING OLD TABLE AS changed '
        'FOR EACH STATEMENT EXECUTE FUNCTION retrieval_embedding_removed()', watched);
    -- Emptying the parent empties each partition, with its triggers.
    IF model_id IS NOT NULL THEN
        EXECUTE format(
            'CREATE TRIGGER embedding_emptied AFTER TRUNCATE ON %s '
            'FOR EACH STATEMENT EXECUTE FUNCTION retrieval_embedding_emptied(%L)',
            watched, model_id);
    END IF;
END $$;

-- Rows of the parent's triggers are every partition's.
CREATE TRIGGER embedding_kept BEFORE UPDATE ON retrieval_embedding
    FOR EACH ROW EXECUTE FUNCTION retrieval_embedding_kept();
CREATE INDEX retrieval_embedding_created ON retrieval_embedding (created_at);

SELECT retrieval_embedding_watch('retrieval_embedding');
SELECT retrieval_embedding_watch(to_regclass('retrieval_embedding_' || id), id)
FROM retrieval_embeddingmodel WHERE to_regclass('retrieval_embedding_' || id) IS NOT NULL;

INSERT INTO retrieval_embeddingcount (model_id, embedded, fingerprint)
SELECT model_id, count(*), sum(retrieval_embedding_mark(image_id, created_at))
FROM retrieval_embedding GROUP BY model_id;
"""

UNWATCH = """
DROP INDEX retrieval_embedding_created;
DROP FUNCTION retrieval_embedding_watch;
DROP FUNCTION retrieval_embedding_added, retrieval_embedding_removed, retrieval_embedding_emptied,
    retrieval_embedding_kept CASCADE;
DROP FUNCTION retrieval_embedding_mark;
"""


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0003_image_roots")]

    operations = [
        migrations.AddField(
            model_name="embeddingmodel",
            name="identity",
            field=models.UUIDField(
                db_default=django.contrib.postgres.functions.RandomUUID(),
                editable=False,
                help_text="the same in every copy of this database, and in no other",
                unique=True,
            ),
        ),
        migrations.CreateModel(
            name="EmbeddingCount",
            fields=[
                (
                    "model",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="count",
                        serialize=False,
                        to="retrieval.embeddingmodel",
                    ),
                ),
                ("embedded", models.PositiveBigIntegerField(default=0)),
                (
                    "fingerprint",
                    models.DecimalField(
                        decimal_places=0,
                        default=0,
                        help_text="the sum of retrieval_embedding_mark over the model's embeddings",
                        max_digits=40,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="EmbeddingRemoval",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("image_id", models.BigIntegerField()),
                ("embedded_at", models.DateTimeField(help_text="its created_at")),
                ("xid", models.BigIntegerField(help_text="the transaction that removed it")),
                (
                    "model",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="removals",
                        to="retrieval.embeddingmodel",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["model", "xid"], name="embedding_removal_xid")],
            },
        ),
        migrations.RunSQL(WATCH, UNWATCH),
    ]
