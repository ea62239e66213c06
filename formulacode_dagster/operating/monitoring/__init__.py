"""How people who do not look are told, and what those who look are shown of the platform itself."""
