import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('retrieval', '0002_flags'),
    ]

    operations = [
        migrations.CreateModel(
            name='ImageRoot',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('location', models.CharField(help_text='/data/inat24, or s3://bucket/prefix', max_length=1000, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.RemoveIndex(
            model_name='image',
            name='image_sha256',
        ),
        migrations.AlterField(
            model_name='image',
            name='sha256',
            field=models.CharField(blank=True, help_text="of the source file's bytes; empty while nobody has read a file at a root", max_length=64),
        ),
        migrations.AlterField(
            model_name='image',
            name='size_bytes',
            field=models.PositiveBigIntegerField(help_text='0 while unknown'),
        ),
        migrations.AddField(
            model_name='image',
            name='root',
            field=models.ForeignKey(blank=True, db_index=False, help_text='where its file stays, at file_name; none: in the store, by its SHA-256', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='retrieval.imageroot'),
        ),
        migrations.AddIndex(
            model_name='image',
            index=models.Index(condition=models.Q(('sha256', ''), _negated=True), fields=['sha256'], name='image_sha256'),
        ),
        migrations.AddConstraint(
            model_name='image',
            constraint=models.CheckConstraint(condition=models.Q(('root__isnull', False), models.Q(('sha256', ''), _negated=True), _connector='OR'), name='image_somewhere'),
        ),
    ]
