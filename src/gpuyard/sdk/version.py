"""Which version this is. The server and the client are released together."""

VERSION = "0.1.0"
