"""The toolbox: a read-only folder shown at /opt/yard in every container, with its own C library, so that its Python,
its editors and its small tools run in any image, even an empty one."""
