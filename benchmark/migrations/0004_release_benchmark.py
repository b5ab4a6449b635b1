import django.db.models.deletion
from django.db import migrations, models

from labeling.queries.models import Benchmark


def first_benchmark() -> int | None:
    return Benchmark.objects.values_list("pk", flat=True).first()


class Migration(migrations.Migration):
    dependencies = [
        ("benchmark", "0003_run_declarations"),
        ("labeling", "0013_benchmarks"),
    ]

    operations = [
        # As the column's default: a made release refuses every update.
        migrations.AddField(
            model_name="release",
            name="benchmark",
            field=models.ForeignKey(
                default=first_benchmark,
                help_text="whose queries it holds; all versions of a name are of one",
                on_delete=django.db.models.deletion.PROTECT,
                related_name="releases",
                to="labeling.benchmark",
            ),
        ),
    ]
