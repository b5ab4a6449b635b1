from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("labeling", "0005_release_audits")]

    operations = [
        migrations.AddField(
            model_name="query",
            name="hand_in_rule",
            field=models.CharField(
                blank=True,
                default="",
                help_text="what allows to hand it in, as `labeling.candidates.rules` reads it; "
                "empty for the setting's",
                max_length=100,
            ),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name="assignment",
            name="rule",
            field=models.CharField(
                blank=True,
                help_text="what met the query's rule: streak, exhausted, streak and "
                "certificate:0.9:0.95; empty for nothing",
                max_length=300,
            ),
        ),
    ]
