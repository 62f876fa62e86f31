"""Runs specs somewhere: tasks in, a stream of events out."""
