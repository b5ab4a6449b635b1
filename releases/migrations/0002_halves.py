from django.db import migrations, models

# A made release changes by a takedown, as before, and once by the closing of its board.
MADE_IS_FINAL = """
CREATE OR REPLACE FUNCTION releases_release_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    may_change text[] := '{takedowns,file_list,archive,header}';
BEGIN
    IF jsonb_array_length(NEW.takedowns) = jsonb_array_length(OLD.takedowns) + 1
       AND NEW.takedowns #- ARRAY[jsonb_array_length(OLD.takedowns)::text] = OLD.takedowns
       AND to_jsonb(NEW) - may_change = to_jsonb(OLD) - may_change THEN
        RETURN NEW;
    END IF;
    IF OLD.board_closed_at IS NULL AND NEW.board_closed_at IS NOT NULL
       AND to_jsonb(NEW) - 'board_closed_at' = to_jsonb(OLD) - 'board_closed_at' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'release % is made and never changes', OLD.id USING ERRCODE = 'check_violation';
END
$$;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('releases', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='release',
            name='board_closed_at',
            field=models.DateTimeField(blank=True, help_text='empty while runs with test queries are taken', null=True),
        ),
        migrations.AddField(
            model_name='release',
            name='halves_secret',
            field=models.CharField(blank=True, db_default='', default='', help_text='32 random bytes that fix the public half of the test split; empty: not divided', max_length=64),
        ),
        migrations.RunSQL(MADE_IS_FINAL),
    ]
