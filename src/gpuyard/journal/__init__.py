"""What every decision was made from, and what was decided: written beside the database, read to decide once more."""
