"""Public benchmarks: never trained on."""
