"""The dataset of released tasks: records, Parquet, card, the Hub or a folder, tags and revisions."""
