# zsh -f complete.zsh FOLDER LINE: LINE, as zsh completes it with the functions in FOLDER.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT= RPROMPT= fpath=($1 \$fpath); autoload -U compinit; compinit -u -D"
# Instead of running a line that was completed, print it between marks, which this line itself, echoed,
# does not have.
zpty -w shell 'show() { print -r -- "<<""<$BUFFER>>"">"; exit }; zle -N show; bindkey "^M" show; setopt nolistbeep'
zpty -w shell 'print rea""dy'
zpty -r shell answer '*ready*'
zpty -w -n shell "$2"$'\t\r'
zpty -r shell answer '*<<<*>>>*'
print -r -- ${${answer##*<<<}%%>>>*}
zpty -d shell
