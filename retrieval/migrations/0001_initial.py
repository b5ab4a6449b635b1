import django.contrib.postgres.indexes
import django.db.models.deletion
import pgvector.django.halfvec
from django.conf import settings
from django.db import migrations, models

from retrieval.extensions import extensions_create

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


def create_extensions(apps, schema_editor):
    extensions_create(schema_editor.connection)


class Migration(migrations.Migration):
    initial = True

    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.RunPython(create_extensions, migrations.RunPython.noop),
        migrations.CreateModel(
            name="Image",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                (
                    "dataset",
                    models.CharField(help_text="the data set it was imported from", max_length=100),
                ),
                (
                    "source_id",
                    models.CharField(help_text="its id in that data set", max_length=500),
                ),
                (
                    "file_name",
                    models.CharField(
                        help_text="its path in that data set; the image_path of a release",
                        max_length=500,
                    ),
                ),
                ("sha256", models.CharField(help_text="of the source file's bytes", max_length=64)),
                (
                    "format",
                    models.CharField(
                        help_text="of the source file, as Pillow names it", max_length=20
                    ),
                ),
                ("width", models.PositiveIntegerField(help_text="pixels, upright")),
                ("height", models.PositiveIntegerField(help_text="pixels, upright")),
                ("size_bytes", models.PositiveBigIntegerField()),
                ("license", models.CharField(blank=True, max_length=200)),
                ("license_url", models.CharField(blank=True, max_length=500)),
                ("rights_holder", models.CharField(blank=True, max_length=500)),
                ("observed_at", models.DateTimeField(blank=True, null=True)),
                ("latitude", models.FloatField(blank=True, null=True)),
                ("longitude", models.FloatField(blank=True, null=True)),
                (
                    "location_uncertainty",
                    models.FloatField(blank=True, help_text="metres", null=True),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "ordering": ["id"],
                "indexes": [models.Index(fields=["sha256"], name="image_sha256")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=["dataset", "source_id"], name="image_source_unique"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(latitude__isnull=True)
                        | models.Q(latitude__range=(-90, 90)),
                        name="image_latitude_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(longitude__isnull=True)
                        | models.Q(longitude__range=(-180, 180)),
                        name="image_longitude_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(width__gt=0, height__gt=0), name="image_size_positive"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="EmbeddingModel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="for example ViT-B-32/openai", max_length=300, unique=True
                    ),
                ),
                ("dimension", models.PositiveIntegerField()),
                ("precision", models.CharField(default="fp32", max_length=10)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("dimension__range", (1, 4000))),
                        name="embedding_model_dimension",
                    )
                ],
            },
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(EMBEDDING_TABLE, "DROP TABLE retrieval_embedding")
            ],
            state_operations=[
                migrations.CreateModel(
                    name="Embedding",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "model_id",
                                "image_id",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("vector", pgvector.django.halfvec.HalfVectorField()),
                        (
                            "created_at",
                            models.DateTimeField(
                                help_text="when it was stored; a candidate list takes none later"
                            ),
                        ),
                        (
                            "model",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="embeddings",
                                to="retrieval.embeddingmodel",
                            ),
                        ),
                        (
                            "image",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="embeddings",
                                to="retrieval.image",
                            ),
                        ),
                    ],
                ),
            ],
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=50)),
                ("title", models.CharField(blank=True, max_length=300)),
                ("params", models.JSONField(default=dict)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("done", models.PositiveBigIntegerField(default=0)),
                ("failed", models.PositiveBigIntegerField(default=0)),
                ("total", models.PositiveBigIntegerField(blank=True, null=True)),
                ("result", models.JSONField(default=dict)),
                (
                    "cursor",
                    models.JSONField(
                        default=dict,
                        help_text="where the next slice goes on; only the kind's handler reads it",
                    ),
                ),
                (
                    "turn",
                    models.PositiveBigIntegerField(
                        default=0,
                        help_text="slices begun; a message that names an earlier turn is stale",
                    ),
                ),
                (
                    "fruitless_turns",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="slices begun since the last that ended or made progress",
                    ),
                ),
                ("error", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "active_seconds",
                    models.FloatField(default=0, help_text="time spent working, without waits"),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "indexes": [
                    models.Index(
                        fields=["id"],
                        condition=models.Q(state__in=["queued", "running"]),
                        name="job_unfinished",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            state__in=["queued", "running", "done", "failed", "cancelled"]
                        ),
                        name="job_state_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="JobItemError",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("item", models.CharField(max_length=500)),
                ("message", models.TextField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "image",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="retrieval.image",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="item_errors",
                        to="retrieval.job",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=["job", "item"], name="job_item_error_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Species",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("scientific_name", models.CharField(max_length=200, unique=True)),
                ("kingdom", models.CharField(blank=True, max_length=100)),
                ("phylum", models.CharField(blank=True, max_length=100)),
                ("class_name", models.CharField(blank=True, max_length=100, verbose_name="class")),
                ("order", models.CharField(blank=True, max_length=100)),
                ("family", models.CharField(blank=True, max_length=100)),
                ("genus", models.CharField(blank=True, max_length=100)),
                ("specific_epithet", models.CharField(blank=True, max_length=100)),
                ("iconic_group", models.CharField(blank=True, max_length=40)),
                ("lookalike_group", models.CharField(blank=True, max_length=100)),
            ],
            options={
                "verbose_name_plural": "species",
                "ordering": ["scientific_name"],
                "indexes": [
                    models.Index(fields=["genus"], name="species_genus"),
                    models.Index(fields=["family"], name="species_family"),
                    models.Index(fields=["lookalike_group"], name="species_lookalike"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("scientific_name", ""), _negated=True),
                        name="species_scientific_name_not_blank",
                    )
                ],
            },
        ),
        migrations.AddField(
            model_name="image",
            name="species",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="images",
                to="retrieval.species",
            ),
        ),
        migrations.CreateModel(
            name="SpeciesName",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "language",
                    models.CharField(
                        blank=True,
                        help_text="BCP 47 code; empty for the scientific name",
                        max_length=20,
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                (
                    "search_text",
                    models.TextField(
                        help_text="the name in lower case without accents, for typo-tolerant search"
                    ),
                ),
                (
                    "species",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="names",
                        to="retrieval.species",
                    ),
                ),
            ],
            options={
                "ordering": ["language", "pk"],
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(
                        fields=["search_text"],
                        opclasses=["gin_trgm_ops"],
                        name="species_name_trigram",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=["species", "language", "name"], name="species_name_unique"
                    )
                ],
            },
        ),
    ]
