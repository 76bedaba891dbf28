"""The way in to running work: web proxy, terminals and SSH, in processes of their own that outlive the server."""
