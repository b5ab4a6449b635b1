import django.contrib.postgres.functions
import django.contrib.postgres.indexes
import django.db.models.deletion
import pgvector.django.halfvec
from django.conf import settings
from django.db import migrations, models

from core.extensions import extensions_create

# Django knows no partitioned tables. STORAGE PLAIN keeps a vector in its row: an exact scan through TOAST
# takes four times as long. Partitions are made by `embedding_model_get_or_create`.
EMBEDDING_TABLE = """
CREATE TABLE retrieval_embedding (
    model_id bigint NOT NULL,
    image_id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    vector halfvec NOT NULL,
    CONSTRAINT retrieval_embedding_pkey PRIMARY KEY (model_id, image_id),
    CONSTRAINT retrieval_embedding_model_fk FOREIGN KEY (model_id)
        REFERENCES retrieval_embeddingmodel (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT retrieval_embedding_image_fk FOREIGN KEY (image_id)
        REFERENCES retrieval_image (id) DEFERRABLE INITIALLY DEFERRED
) PARTITION BY LIST (model_id);
ALTER TABLE retrieval_embedding ALTER COLUMN vector SET STORAGE PLAIN;
-- Deleting an image, or noticing that its file changed, looks its embeddings up.
CREATE INDEX retrieval_embedding_image ON retrieval_embedding (image_id);
"""


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
"""

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


def create_extensions(apps, schema_editor):
    extensions_create(schema_editor.connection)


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('core', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunPython(create_extensions, migrations.RunPython.noop),
        migrations.CreateModel(
            name='EmbeddingModel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='for example ViT-B-32/openai', max_length=300, unique=True)),
                ('dimension', models.PositiveIntegerField()),
                ('precision', models.CharField(default='fp32', max_length=10)),
                ('parameters', models.PositiveBigIntegerField(help_text='of image and text side together; empty until its text side is loaded', null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('identity', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), editable=False, help_text='the same in every copy of this database, and in no other', unique=True)),
            ],
        ),
        migrations.CreateModel(
            name='EmbeddingRemoval',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('image_id', models.BigIntegerField()),
                ('embedded_at', models.DateTimeField(help_text='its created_at')),
                ('xid', models.BigIntegerField(help_text='the transaction that removed it')),
            ],
        ),
        migrations.CreateModel(
            name='EmbeddingRange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('first_image', models.BigIntegerField(help_text='the lowest image id, included')),
                ('last_image', models.BigIntegerField(help_text='the highest image id, included')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='Image',
            fields=[
                ('id', models.BigIntegerField(primary_key=True, serialize=False)),
                ('dataset', models.CharField(help_text='the data set it was imported from', max_length=100)),
                ('source_id', models.CharField(help_text='its id in that data set', max_length=500)),
                ('file_name', models.CharField(help_text='its path in that data set; the image_path of a release', max_length=500)),
                ('sha256', models.CharField(blank=True, help_text="of the source file's bytes; empty while nobody has read a file at a root", max_length=64)),
                ('format', models.CharField(help_text='of the source file, as Pillow names it', max_length=20)),
                ('width', models.PositiveIntegerField(help_text='pixels, upright')),
                ('height', models.PositiveIntegerField(help_text='pixels, upright')),
                ('size_bytes', models.PositiveBigIntegerField(help_text='0 while unknown')),
                ('license', models.CharField(blank=True, max_length=200)),
                ('license_url', models.CharField(blank=True, max_length=500)),
                ('rights_holder', models.CharField(blank=True, max_length=500)),
                ('observed_at', models.DateTimeField(blank=True, null=True)),
                ('latitude', models.FloatField(blank=True, null=True)),
                ('longitude', models.FloatField(blank=True, null=True)),
                ('location_uncertainty', models.FloatField(blank=True, help_text='meters', null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ['id'],
            },
        ),
        migrations.CreateModel(
            name='ImageFlag',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('person', 'Person or face'), ('personal_data', 'Personal data'), ('no_organism', 'No organism'), ('not_a_photo', 'Spectrogram or drawing'), ('wrong_species', 'Wrong species'), ('poor_quality', 'Poor quality'), ('duplicate', 'Duplicate')], max_length=20)),
                ('note', models.CharField(blank=True, max_length=1000)),
                ('state', models.CharField(choices=[('open', 'Open'), ('upheld', 'Image withdrawn'), ('cleared', 'Cleared')], default='open', max_length=10)),
                ('raised_at', models.DateTimeField(auto_now_add=True)),
                ('decided_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='ImageRoot',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('location', models.CharField(help_text='/data/inat24, or s3://bucket/prefix', max_length=1000, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='ImageWithdrawal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('note', models.CharField(blank=True, max_length=1000)),
                ('withdrawn_at', models.DateTimeField()),
                ('restored_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='Species',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('scientific_name', models.CharField(max_length=200, unique=True)),
                ('kingdom', models.CharField(blank=True, max_length=100)),
                ('phylum', models.CharField(blank=True, max_length=100)),
                ('class_name', models.CharField(blank=True, max_length=100, verbose_name='class')),
                ('order', models.CharField(blank=True, max_length=100)),
                ('family', models.CharField(blank=True, max_length=100)),
                ('genus', models.CharField(blank=True, max_length=100)),
                ('specific_epithet', models.CharField(blank=True, max_length=100)),
                ('iconic_group', models.CharField(blank=True, max_length=40)),
                ('lookalike_group', models.CharField(blank=True, max_length=100)),
            ],
            options={
                'verbose_name_plural': 'species',
                'ordering': ['scientific_name'],
            },
        ),
        migrations.CreateModel(
            name='SpeciesName',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('language', models.CharField(blank=True, help_text='BCP 47 code; empty for the scientific name', max_length=20)),
                ('name', models.CharField(max_length=200)),
                ('search_text', models.TextField(help_text='the name in lower case without accents, for typo-tolerant search')),
            ],
            options={
                'ordering': ['language', 'pk'],
            },
        ),
        migrations.CreateModel(
            name='TextVector',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('text', models.TextField()),
                ('digest', models.BinaryField(help_text='SHA-256 of the text in UTF-8', max_length=32)),
                ('vector', pgvector.django.halfvec.HalfVectorField(null=True)),
                ('error', models.TextField(blank=True, help_text='why there is no vector')),
                ('page', models.CharField(blank=True, help_text='the only page that waits for it, if that is known', max_length=100)),
                ('asked_at', models.DateTimeField(help_text='when it was last requested')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('model', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='text_vectors', to='retrieval.embeddingmodel')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('error', ''), ('vector', None)), fields=['asked_at'], name='text_vector_wanted')],
                'constraints': [models.UniqueConstraint(fields=('model', 'digest'), name='text_vector_once')],
            },
        ),
        migrations.CreateModel(
            name='CorpusCount',
            fields=[
                ('id', models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ('images', models.PositiveBigIntegerField()),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='corpus_count_one')],
            },
        ),
        migrations.CreateModel(
            name='EmbeddingCount',
            fields=[
                ('model', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='count', serialize=False, to='retrieval.embeddingmodel')),
                ('embedded', models.PositiveBigIntegerField(default=0)),
                ('fingerprint', models.DecimalField(decimal_places=0, default=0, help_text="the sum of retrieval_embedding_mark over the model's embeddings", max_digits=40)),
            ],
        ),
        migrations.AddConstraint(
            model_name='embeddingmodel',
            constraint=models.CheckConstraint(condition=models.Q(('dimension__range', (1, 4000))), name='embedding_model_dimension'),
        ),
        migrations.AddField(
            model_name='embeddingremoval',
            name='model',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='removals', to='retrieval.embeddingmodel'),
        ),
        migrations.AddField(
            model_name='embeddingrange',
            name='job',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='embedding_ranges', to='core.job'),
        ),
        migrations.AddField(
            model_name='imageflag',
            name='decided_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='imageflag',
            name='image',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='flags', to='retrieval.image'),
        ),
        migrations.AddField(
            model_name='imageflag',
            name='raised_by',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='image',
            name='root',
            field=models.ForeignKey(blank=True, db_index=False, help_text='where its file stays, at file_name; none: in the store, by its SHA-256', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='retrieval.imageroot'),
        ),
        migrations.AddField(
            model_name='imagewithdrawal',
            name='image',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='withdrawals', to='retrieval.image'),
        ),
        migrations.AddField(
            model_name='imagewithdrawal',
            name='restored_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='imagewithdrawal',
            name='withdrawn_by',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.CreateModel(
            name='SpeciesCount',
            fields=[
                ('species', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='counted', serialize=False, to='retrieval.species')),
                ('images', models.PositiveBigIntegerField()),
            ],
        ),
        migrations.AddIndex(
            model_name='species',
            index=models.Index(fields=['genus'], name='species_genus'),
        ),
        migrations.AddIndex(
            model_name='species',
            index=models.Index(fields=['family'], name='species_family'),
        ),
        migrations.AddIndex(
            model_name='species',
            index=models.Index(fields=['lookalike_group'], name='species_lookalike'),
        ),
        migrations.AddConstraint(
            model_name='species',
            constraint=models.CheckConstraint(condition=models.Q(('scientific_name', ''), _negated=True), name='species_scientific_name_not_blank'),
        ),
        migrations.AddField(
            model_name='image',
            name='species',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='images', to='retrieval.species'),
        ),
        migrations.AddField(
            model_name='speciesname',
            name='species',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='names', to='retrieval.species'),
        ),
        migrations.AddIndex(
            model_name='embeddingremoval',
            index=models.Index(fields=['model', 'xid'], name='embedding_removal_xid'),
        ),
        migrations.AddConstraint(
            model_name='embeddingrange',
            constraint=models.CheckConstraint(condition=models.Q(('first_image__lte', models.F('last_image'))), name='embedding_range_order'),
        ),
        migrations.AddIndex(
            model_name='imageflag',
            index=models.Index(condition=models.Q(('state', 'open')), fields=['image'], name='image_flag_open'),
        ),
        migrations.AddConstraint(
            model_name='imageflag',
            constraint=models.UniqueConstraint(condition=models.Q(('state', 'open')), fields=('image', 'kind', 'raised_by'), name='image_flag_open_once'),
        ),
        migrations.AddConstraint(
            model_name='imageflag',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['open', 'upheld', 'cleared'])), name='image_flag_state_known'),
        ),
        migrations.AddConstraint(
            model_name='imageflag',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('decided_at__isnull', True), ('state', 'open')), models.Q(models.Q(('state', 'open'), _negated=True), ('decided_at__isnull', False)), _connector='OR'), name='image_flag_decided_whole'),
        ),
        migrations.AddConstraint(
            model_name='imagewithdrawal',
            constraint=models.UniqueConstraint(condition=models.Q(('restored_at__isnull', True)), fields=('image',), name='image_withdrawn_once'),
        ),
        migrations.AddConstraint(
            model_name='imagewithdrawal',
            constraint=models.CheckConstraint(condition=models.Q(('restored_at__isnull', True), ('restored_at__gte', models.F('withdrawn_at')), _connector='OR'), name='image_withdrawal_in_order'),
        ),
        migrations.AddIndex(
            model_name='image',
            index=models.Index(condition=models.Q(('sha256', ''), _negated=True), fields=['sha256'], name='image_sha256'),
        ),
        migrations.AddIndex(
            model_name='image',
            index=models.Index(fields=['species', 'id'], name='image_species'),
        ),
        migrations.AddIndex(
            model_name='image',
            index=django.contrib.postgres.indexes.BrinIndex(autosummarize=True, fields=['created_at'], name='image_created'),
        ),
        migrations.AddConstraint(
            model_name='image',
            constraint=models.UniqueConstraint(fields=('dataset', 'source_id'), name='image_source_unique'),
        ),
        migrations.AddConstraint(
            model_name='image',
            constraint=models.CheckConstraint(condition=models.Q(('latitude__isnull', True), ('latitude__range', (-90, 90)), _connector='OR'), name='image_latitude_range'),
        ),
        migrations.AddConstraint(
            model_name='image',
            constraint=models.CheckConstraint(condition=models.Q(('longitude__isnull', True), ('longitude__range', (-180, 180)), _connector='OR'), name='image_longitude_range'),
        ),
        migrations.AddConstraint(
            model_name='image',
            constraint=models.CheckConstraint(condition=models.Q(('height__gt', 0), ('width__gt', 0)), name='image_size_positive'),
        ),
        migrations.AddConstraint(
            model_name='image',
            constraint=models.CheckConstraint(condition=models.Q(('root__isnull', False), models.Q(('sha256', ''), _negated=True), _connector='OR'), name='image_somewhere'),
        ),
        migrations.AddIndex(
            model_name='speciesname',
            index=django.contrib.postgres.indexes.GinIndex(fields=['search_text'], name='species_name_trigram', opclasses=['gin_trgm_ops']),
        ),
        migrations.AddConstraint(
            model_name='speciesname',
            constraint=models.UniqueConstraint(fields=('species', 'language', 'name'), name='species_name_unique'),
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(EMBEDDING_TABLE)],
            state_operations=[
                migrations.CreateModel(
                    name='Embedding',
                    fields=[
                        ('pk', models.CompositePrimaryKey('model_id', 'image_id', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('vector', pgvector.django.halfvec.HalfVectorField()),
                        ('created_at', models.DateTimeField(help_text='when it was stored; a candidate list takes none later')),
                        ('model', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='embeddings', to='retrieval.embeddingmodel')),
                        ('image', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='embeddings', to='retrieval.image')),
                    ],
                ),
            ],
        ),
        migrations.RunSQL(WATCH),
        migrations.RunSQL("\n".join(TRIGGERS)),
    ]
