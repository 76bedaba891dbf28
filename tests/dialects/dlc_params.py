"""The params file of the guide, as it stands there."""

USUAL = """\
name=yourtaskname
kind=PyTorchJob
worker_count=1
worker_cpu=4
worker_gpu=0
worker_memory=4
worker_shared_memory=4
worker_image=master0:5000/eflops/pytorch:v1
command=echo "hello world"
priority=1
workspace_id=your-workspace-id
interactive=false
"""
