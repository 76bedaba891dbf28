#!/usr/bin/env bash
# >>> conda initialize >>>
# !! Contents within this block are managed by 'conda init' !!
__conda_setup="$('/home/user/miniconda/envs/py36/bin/conda' 'shell.bash' 'hook' 2> /dev/null)"
if [ $? -eq 0 ]; then
    eval "$__conda_setup"
else
    if [ -f "/home/user/miniconda/envs/work/etc/profile.d/conda.sh" ]; then
        . "/home/user/miniconda/envs/work/etc/profile.d/conda.sh"
    else
        export PATH="/home/user/miniconda/envs/work/bin:$PATH"
    fi
fi
unset __conda_setup
# <<< conda initialize <<<
conda activate work

# run command here
python pytorch.py -train -batch_size 8
