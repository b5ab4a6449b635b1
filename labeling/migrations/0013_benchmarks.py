import django.db.models.deletion
from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from labeling.queries.models import Benchmark


def make_first(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    apps.get_model("labeling", "Benchmark").objects.create(name="Benchmark")


def first_benchmark() -> int | None:
    return Benchmark.objects.values_list("pk", flat=True).first()


class Migration(migrations.Migration):
    dependencies = [
        ("labeling", "0012_assignments"),
        ("retrieval", "0002_takedown"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Benchmark",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100, unique=True)),
                (
                    "guidelines",
                    models.TextField(blank=True, help_text="displayed above those of a query"),
                ),
                (
                    "species_count",
                    models.PositiveIntegerField(default=0, help_text="of the filter"),
                ),
                (
                    "settings",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="the installation's settings that it overrides, by name",
                    ),
                ),
                (
                    "people",
                    models.ManyToManyField(
                        blank=True,
                        help_text="annotators who see its queries; empty for all",
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "species",
                    models.ManyToManyField(
                        blank=True,
                        help_text="its filter; empty for the whole corpus",
                        related_name="+",
                        to="retrieval.species",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("name", ""), _negated=True),
                        name="benchmark_name_not_blank",
                    )
                ],
            },
        ),
        migrations.RunPython(make_first, migrations.RunPython.noop),
        migrations.AddField(
            model_name="query",
            name="benchmark",
            field=models.ForeignKey(
                default=first_benchmark,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="queries",
                to="labeling.benchmark",
            ),
        ),
    ]
