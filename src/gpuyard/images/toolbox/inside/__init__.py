"""What runs inside workloads, from the toolbox and by the toolbox's Python: the starts of Lab and editor, and the
kernels Lab offers. It is copied into the toolbox; nothing outside imports it but tests."""
