"""At which commits a benchmark's series takes a step. Pure functions of numbers: where they came from is not theirs."""
