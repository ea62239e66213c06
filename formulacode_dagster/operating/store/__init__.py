"""Postgres: migrations, table definitions, and one module of queries per concern. Import the concrete submodule."""
