"""The thing under test: models, data, losses, schedule, strategies, and the one training loop."""
