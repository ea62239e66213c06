"""Commands that look after a platform: backups, disks, the database, mirrors, pools."""
