"""Running a stage item by item: what is pending, what came of it, what a consumer may rely on."""
