"""What shells read to complete words of ours: they ask p2smt, by an environment variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

# The line up to the cursor is given as it is typed.  A word that ends in "=" waits for its value.
_BASH = """\
_p2smt_completion() {
    local IFS=$'\\n'
    COMPREPLY=($(_P2SMT_COMPLETE=bash COMP_LINE="${COMP_LINE:0:COMP_POINT}" \\
        COMP_WORDBREAKS="$COMP_WORDBREAKS" "$1" 2> /dev/null))
    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
    return 0
}
complete -o default -F _p2smt_completion p2smt
"""
_ZSH = """\
#compdef p2smt
_p2smt_completion() {
    local -a found
    found=("${(@f)$(_P2SMT_COMPLETE=zsh COMP_LINE="${(j: :)words[1,CURRENT]}" $words[1] \\
        2> /dev/null)}")
    if [[ -z ${found[1]} ]]; then
        _files
    elif [[ ${found[1]%%:*} == *= ]]; then
        _describe -V p2smt found -S ''
    else
        _describe -V p2smt found
    fi
}
compdef _p2smt_completion p2smt
"""
SCRIPTS: Mapping[str, str] = MappingProxyType({"bash": _BASH, "zsh": _ZSH})


def completion_script(shells: Sequence[str]) -> str:
    """The script of the one shell that is named.

    Raises:
        InputError: there is none, or none for it.
    """
    from p2smt.errors import InputError

    named = " ".join(shells)
    if named not in SCRIPTS:
        rule = f"takes one of {', '.join(SCRIPTS)}"
        remedy = 'write eval "$(p2smt --show-completion bash)" into ~/.bashrc'
        raise InputError(f"--show-completion {named[:40]}".rstrip(), rule, remedy)
    return SCRIPTS[named].rstrip("\n")
