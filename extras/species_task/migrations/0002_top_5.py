from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("species_task", "0001_initial")]

    operations = [
        migrations.AddField(
            "speciesrun",
            "correct_5",
            models.PositiveIntegerField(
                blank=True, help_text="images whose species is among the five nearest", null=True
            ),
        ),
        migrations.AddField(
            "speciesrun",
            "training_images",
            models.JSONField(
                db_default={},
                default=dict,
                help_text="how many the model was trained on, by scientific name",
            ),
        ),
        migrations.AlterField(
            "speciesrun",
            "sets",
            models.JSONField(
                default=list, help_text="[data set, species, images, correct, correct_5], by name"
            ),
        ),
    ]
