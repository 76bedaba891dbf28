"""Descriptions of work, read into our domain and written back. One folder or file per way of describing it.

Pure: text and plain data in, domain objects or a refusal out. What is read here is trusted by every other room after.
"""
