"""The control plane: everything that needs Dagster. It never imports torch, Ray or a recipe."""
