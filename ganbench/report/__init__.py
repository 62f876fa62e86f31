"""Rows → frame → summary → tables. Pure on what it is given; knows no store."""
