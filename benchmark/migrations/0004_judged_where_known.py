from django.db import migrations


def drop_unknown(apps, schema_editor):
    """Imported benchmarks that name relevant images alone don't tell how much was judged."""
    scores = apps.get_model("benchmark", "RunScores").objects.filter(
        release__origin="imported", release__header__annotators=0
    )
    for one in scores.iterator(chunk_size=20):
        one.measures = {
            key: values for key, values in one.measures.items() if not key.startswith("Judged@")
        }
        one.save()


class Migration(migrations.Migration):
    """Scores of Judged@k go where a release doesn't tell which images were judged."""

    dependencies = [("benchmark", "0003_rerank")]

    operations = [migrations.RunPython(drop_unknown, migrations.RunPython.noop)]
