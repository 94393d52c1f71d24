"""The scripts for shells: they pass the words on and show what comes back.

An answer is a line for each candidate, `value<TAB>what it is`, and at most one line that begins
with a colon: `:file` or `:folder` leaves the rest to the shell.
"""

from __future__ import annotations

_BASH = r"""# bash completion for mcptest; made by: mcptest completion bash
_mcptest() {
    local word line
    COMPREPLY=()
    word="${COMP_WORDS[COMP_CWORD]}"
    if [ "$word" = "=" ]; then word=""; fi
    while IFS= read -r line; do
        case "$line" in
            :file)
                compopt -o filenames 2>/dev/null
                while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$word")
                ;;
            :folder)
                compopt -o filenames 2>/dev/null
                while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "$word")
                ;;
            *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <("$1" completion bash --words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _mcptest mcptest
"""

_ZSH = r"""#compdef mcptest
# zsh completion for mcptest; made by: mcptest completion zsh
_mcptest() {
    local line rest=""
    local -a found
    while IFS= read -r line; do
        case "$line" in
            (:file|:folder) rest="$line" ;;
            (*) found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
        esac
    done < <("${words[1]}" completion zsh --words -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    if [[ "${words[CURRENT]}" == --*=* ]]; then compset -P '*='; fi
    if (( ${#found} )); then _describe -t values mcptest found; fi
    case "$rest" in
        (:file) _files ;;
        (:folder) _files -/ ;;
    esac
}
if [ "${funcstack[1]}" = "_mcptest" ]; then
    _mcptest "$@"
else
    compdef _mcptest mcptest
fi
"""

_FISH = r"""# fish completion for mcptest; made by: mcptest completion fish
function __mcptest_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] completion fish --words -- $words[2..-1] 2>/dev/null)
        switch $line
            case ':file'
                __fish_complete_path (commandline -ct)
            case ':folder'
                __fish_complete_directories (commandline -ct)
            case '*'
                echo $line
        end
    end
end
complete -c mcptest -f -a '(__mcptest_complete)'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
