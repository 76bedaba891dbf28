"""What images are given so that people can work in them: the toolbox, its services, and where packages come from."""
