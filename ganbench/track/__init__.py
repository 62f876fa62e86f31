"""Write-ahead log, MLflow writer and reader. The only place that knows how things are spelled for MLflow."""
