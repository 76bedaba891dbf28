"""Front doors: programs of other systems, kept word for word, on top of the one model."""
