from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('retrieval', '0002_model_in_use'),
    ]

    operations = [
        migrations.AddField(
            model_name='embeddingmodel',
            name='image_flops',
            field=models.PositiveBigIntegerField(help_text='floating-point operations for one image; empty until counted', null=True),
        ),
        migrations.AddField(
            model_name='embeddingmodel',
            name='text_flops',
            field=models.PositiveBigIntegerField(help_text="and for one text; empty where they can't be counted", null=True),
        ),
    ]
