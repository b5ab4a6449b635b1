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
    ],
    default=labeling.judging.sources.JudgmentSource["LIST"],
    max_length=10,
)


class Migration(migrations.Migration):
    dependencies = [("labeling", "0003_blinditem_used_up_at")]

    operations = [
        migrations.AlterField("judgment", "source", SOURCE),
        migrations.AlterField("judgmentevent", "source", SOURCE),
        migrations.AddField(
            "revision",
            "feature",
            models.CharField(
                max_length=100,
                blank=True,
                db_default="",
                help_text="the key of the images' further number; empty without one",
            ),
        ),
        migrations.AddField(
            "revision",
            "weight",
            models.FloatField(
                default=0.0,
                db_default=0.0,
                help_text="of the further number, in half precision",
            ),
        ),
    ]
