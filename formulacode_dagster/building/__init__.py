"""From a commit to a verified image: declarations, locks, engines, suites, specs, repairs, agents and verification."""
