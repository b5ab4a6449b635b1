"""What admins look after: jobs, backups and the settings in force."""
