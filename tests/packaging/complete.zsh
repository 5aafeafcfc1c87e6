# zsh -f complete.zsh FOLDER LINE FILE: writes LINE to FILE, as zsh completes it with the functions in
# FOLDER. To a file, because what a terminal is sent has more in it than text.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT= RPROMPT= fpath=($1 \$fpath); autoload -U compinit; compinit -u -D"
# Instead of running a line that was completed, write it.
zpty -w shell "show() { print -r -- \"\$BUFFER\" >$3.part; mv $3.part $3; exit }"
zpty -w shell 'zle -N show; bindkey "^M" show; setopt nolistbeep; print rea""dy'
zpty -r shell answer '*ready*'
zpty -w -n shell "$2"$'\t\r'
repeat 600; do
  [[ -e $3 ]] && break
  sleep 0.05
done
zpty -d shell
