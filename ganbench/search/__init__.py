"""Searches: one Optuna study by ask and tell, from an experiment's space to its best arms."""
