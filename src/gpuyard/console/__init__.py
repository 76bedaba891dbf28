"""The console: the pages people see in the browser. `web/` is its source; what is built from it lies in `built`."""
