import django.contrib.postgres.fields
import django.db.models.deletion
import pgvector.django.halfvec
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("labeling", "0008_grades"),
        ("retrieval", "0002_takedown"),
    ]

    operations = [
        migrations.AddField(
            model_name="candidatelist",
            name="added_models",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=300),
                default=list,
                help_text="those that the list before didn't have: their unjudged images come first",
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="candidatelist",
            name="last_event",
            field=models.BigIntegerField(
                default=0,
                help_text="the last act of judging before it was frozen, where models were added",
            ),
        ),
        migrations.AddField(
            model_name="candidatelist",
            name="pool_models",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=300),
                default=list,
                help_text="names of the models whose rankings are fused; empty for a list of one",
                size=None,
            ),
        ),
        migrations.CreateModel(
            name="PoolRanking",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "place",
                    models.PositiveSmallIntegerField(
                        help_text="the model's among the pool's, from 1"
                    ),
                ),
                ("text_vector", pgvector.django.halfvec.HalfVectorField()),
                (
                    "image_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), help_text="best first", size=None
                    ),
                ),
                (
                    "scores",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.FloatField(),
                        help_text="their cosine similarities to the text",
                        size=None,
                    ),
                ),
                ("checksum", models.CharField(help_text="SHA-256 as of a list", max_length=64)),
                (
                    "embedding_model",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="retrieval.embeddingmodel",
                    ),
                ),
                (
                    "list",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="rankings",
                        to="labeling.candidatelist",
                    ),
                ),
            ],
            options={
                "ordering": ["list", "place"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("list", "place"), name="pool_ranking_place_unique"
                    )
                ],
            },
        ),
    ]
