"""The web part of the gateway: a careful proxy in front of what runs inside workloads, and a few pages of its own."""
