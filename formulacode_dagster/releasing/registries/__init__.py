"""Registries: images pushed once under immutable tags, pulled back by digest, with provenance and SBOM attached."""
