import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("retrieval", "0005_counts")]

    operations = [
        migrations.CreateModel(
            name='EmbeddingShare',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('first_image', models.BigIntegerField(help_text='the lowest image id, included')),
                ('last_image', models.BigIntegerField(help_text='the highest image id, included')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('job', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='embedding_shares', to='retrieval.job')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('first_image__lte', models.F('last_image'))), name='embedding_share_range')],
            },
        ),
    ]
