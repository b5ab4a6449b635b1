from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('benchmark', '0002_takedown'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='code',
            field=models.URLField(blank=True, help_text='where the code is', max_length=500),
        ),
        migrations.AddField(
            model_name='run',
            name='tuning',
            field=models.CharField(blank=True, choices=[('zero_shot', 'Zero-shot'), ('tuned', 'Tuned for the task')], help_text='empty: not stated', max_length=10),
        ),
        migrations.AlterField(
            model_name='run',
            name='kind',
            field=models.CharField(choices=[('upload', 'Submitted'), ('model', 'Embedding model'), ('random', 'Random order'), ('best', 'Best possible re-rank'), ('fusion', 'Fusion of runs'), ('rerank_embedding', 'Re-ranked by an embedding model'), ('rerank_multimodal', 'Re-ranked by a multimodal model')], default='upload', max_length=20),
        ),
        migrations.RemoveConstraint(
            model_name='run',
            name='run_first_stage_where_needed',
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('first_stage__isnull', False), ('kind', 'best')), models.Q(('first_stage__isnull', False), ('kind__startswith', 'rerank_')), models.Q(('kind__startswith', 'rerank_'), ('task', 'rerank')), models.Q(('first_stage__isnull', True), ('kind__in', ['upload', 'model', 'random', 'fusion'])), _connector='OR'), name='run_first_stage_where_needed'),
        ),
    ]
