-- Dagster's own storage, beside the platform's database.
CREATE DATABASE dagster;
