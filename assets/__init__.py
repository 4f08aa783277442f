"""The Dagster code location: what is computed when, shown how, and what happens when it fails."""
