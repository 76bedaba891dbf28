"""Benchmarks and experiments. Imports gpuyard, is imported by nothing."""
