# Read once by every interactive shell in a workload: bash by PROMPT_COMMAND, other shells by ENV. Nothing is written to
# the home or to the image, so that the same home can be used in every image.
# It makes `conda activate` work where there is conda, and brings back what a login took out of the image's PATH.

YARD_READY=1

if [ -n "${YARD_PATH-}" ]; then
    _yard_rest=$YARD_PATH: _yard_new=
    while [ -n "$_yard_rest" ]; do
        _yard_one=${_yard_rest%%:*} _yard_rest=${_yard_rest#*:}
        case ":$PATH:" in *":$_yard_one:"*) ;; *) [ -n "$_yard_one" ] && _yard_new=$_yard_new$_yard_one: ;; esac
    done
    PATH=$_yard_new$PATH
fi
_yard_here=${YARD_TOOLBOX:-/opt/yard}
case ":$PATH:" in *":$_yard_here/shims:"*) ;; *) PATH=$PATH:$_yard_here/shims ;; esac
if ! command -v ls >/dev/null 2>&1 && [ -d "$_yard_here/applets" ]; then
    PATH=$PATH:$_yard_here/applets # an image with nothing in it
fi
export PATH

_yard_conda() {
    case "$(type conda 2>/dev/null)" in *function*) return 0 ;; esac
    if [ -n "${CONDA_EXE-}" ]; then set -- "${CONDA_EXE%/bin/conda}"; else set --; fi
    _yard_one=$(command -v conda 2>/dev/null) && set -- "$@" "${_yard_one%/*bin/conda}"
    for _yard_one in "$@" /opt/conda /opt/miniconda3 /opt/miniconda /opt/anaconda3 /opt/miniforge3 /opt/mambaforge \
        "$HOME/miniconda3" "$HOME/miniconda" "$HOME/anaconda3" "$HOME/miniforge3" "$HOME/mambaforge" \
        /root/miniconda3 /root/miniconda /root/anaconda3 /root/miniforge3 \
        /home/*/miniconda3 /home/*/miniconda /home/*/anaconda3 /usr/local/miniconda3 /usr/local/conda /usr/local/anaconda3; do
        if [ -r "$_yard_one/etc/profile.d/conda.sh" ]; then
            . "$_yard_one/etc/profile.d/conda.sh"
            return 0
        fi
    done
}
_yard_conda
unset -f _yard_conda
unset _yard_rest _yard_new _yard_one _yard_here
