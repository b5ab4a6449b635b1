from django.db import migrations, models

GRADE = {
    "blank": True,
    "help_text": "from 0 to 3, where the query asks for one",
    "null": True,
}
REASON = {"blank": True, "db_default": "", "help_text": "why it has this grade", "max_length": 200}


class Migration(migrations.Migration):
    dependencies = [("labeling", "0007_second_opinions")]

    operations = [
        migrations.AddField(
            model_name="query",
            name="grades",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "None: relevant, not relevant or unsure"),
                    ("partly", "Four; definitely and partly are relevant"),
                    ("definitely", "Four; only definitely is relevant"),
                ],
                default="",
                help_text="which of four grades are relevant; empty where it asks for none",
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="query",
            constraint=models.CheckConstraint(
                condition=models.Q(grades__in=["", "partly", "definitely"]),
                name="query_grades_known",
            ),
        ),
        *(
            operation
            for name, constraint in (
                ("judgment", "judgment_grade"),
                ("judgmentevent", "judgment_event_grade"),
            )
            for operation in (
                migrations.AddField(
                    model_name=name, name="grade", field=models.PositiveSmallIntegerField(**GRADE)
                ),
                migrations.AddField(
                    model_name=name,
                    name="reason",
                    field=models.CharField(**REASON),
                ),
                migrations.AddConstraint(
                    model_name=name,
                    constraint=models.CheckConstraint(
                        condition=models.Q(grade=None) | models.Q(grade__range=(0, 3)),
                        name=constraint,
                    ),
                ),
            )
        ),
    ]
