"""AI Factory: how a pull request becomes a controlled training experiment."""
