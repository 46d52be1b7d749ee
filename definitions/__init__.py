"""What exists: datasets, mixes, jobs and clusters. Empty on purpose: workers import it without Dagster."""
