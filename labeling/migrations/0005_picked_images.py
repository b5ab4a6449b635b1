from django.db import migrations, models

import labeling.judging.sources

SOURCE = models.CharField(
    choices=[
        ("list", "Candidate list"),
        ("search", "Search"),
        ("similar", "More like this"),
        ("audit", "Audit"),
        ("import", "Import"),
        ("learned", "Order that learns"),
        ("second", "Second opinion"),
        ("run", "Submitted run"),
        ("correction", "Correction"),
        ("reader", "Reader"),
        ("picked", "Further image"),
    ],
    default=labeling.judging.sources.JudgmentSource["LIST"],
    max_length=10,
)


class Migration(migrations.Migration):
    dependencies = [("labeling", "0004_readers")]

    operations = [
        migrations.AlterField("judgment", "source", SOURCE),
        migrations.AlterField("judgmentevent", "source", SOURCE),
    ]
