"""gpuyard's own job file: YAML or JSON in, a `Spec` out, and back.

    text ──parse_yaml / parse_json──> plain data (+ Marks: where each value stands) ──read_job──> JobFile
    JobFile.spec ──write_job──> plain data ──set_value──> plain data with one value changed ──read_job──> ...

Every problem of a file is found in one go and told with its place.
"""

from __future__ import annotations

from gpuyard.dialects.native.changing import set_value
from gpuyard.dialects.native.image_name import check_image_name
from gpuyard.dialects.native.json_text import parse_json
from gpuyard.dialects.native.marks import Marks
from gpuyard.dialects.native.reading import JobFile, read_job, read_priority
from gpuyard.dialects.native.schema import job_schema
from gpuyard.dialects.native.workplace import read_workplace, workplace_schema, write_workplace
from gpuyard.dialects.native.writing import write_job
from gpuyard.dialects.native.yaml_text import parse_yaml

__all__ = [
    "JobFile",
    "Marks",
    "check_image_name",
    "job_schema",
    "parse_json",
    "parse_yaml",
    "read_job",
    "read_priority",
    "read_workplace",
    "set_value",
    "workplace_schema",
    "write_job",
    "write_workplace",
]
