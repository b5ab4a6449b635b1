from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("labeling", "0011_comments")]

    operations = [
        migrations.AddField(
            model_name="query",
            name="annotators_wanted",
            field=models.PositiveSmallIntegerField(
                default=0, help_text="how many label it, and hand it in; 0 for whoever begins"
            ),
        ),
        migrations.AddField(
            model_name="query",
            name="assigned_only",
            field=models.BooleanField(
                default=False,
                help_text="only those assigned, or who have begun, see and label it",
            ),
        ),
        migrations.AddField(
            model_name="assignment",
            name="assigned_at",
            field=models.DateTimeField(
                blank=True,
                help_text="by a reviewer; empty for who began by themselves",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="assignment",
            name="paused_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="assignment",
            name="sent_back_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="assignment",
            name="sent_back_note",
            field=models.TextField(
                blank=True, default="", help_text="the reviewer's, for the annotator"
            ),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name="assignment",
            name="handed_in_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="labelingpreferences",
            name="mails",
            field=models.BooleanField(
                default=True,
                help_text="whether they get an e-mail when a query is assigned or sent back",
            ),
        ),
    ]
