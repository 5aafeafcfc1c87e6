"""Completions for bash, zsh and fish from --help: commands, flags, values that are known, files."""

import shlex

# Kinds of values, as --help names them.
FILES = ("MODEL", "FILE", "NAME=PATH")
DIRECTORIES = ("DIR",)


def words(options):
    return " ".join(name for option in options for name in (option.name, option.short) if name)


def value_case(option):
    """What bash offers after this option: a line of a case, or "" where it offers nothing known."""
    names = "|".join(name for name in (option.name, option.short) if name)
    if option.choices:
        return f'{names}) COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$word")) ;;'
    if option.kind in FILES:
        return f'{names}) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")) ;;'
    if option.kind in DIRECTORIES:
        return f'{names}) compopt -o filenames; COMPREPLY=($(compgen -d -- "$word")) ;;'
    return f"{names}) ;;" if option.kind else ""


def bash_command(command):
    cases = "\n".join(f"        {line}" for line in map(value_case, command.options) if line)
    has_file = any(p.kind in FILES for p in command.positionals)
    otherwise = ('compopt -o filenames; COMPREPLY=($(compgen -f -- "$word"))' if has_file else ":")
    return f"""    {command.name})
      case $previous in
{cases}
        *) case $word in
             -*) COMPREPLY=($(compgen -W "{words(command.options)}" -- "$word")) ;;
             *) {otherwise} ;;
           esac ;;
      esac ;;"""


def bash(top, commands):
    names = " ".join(command.name for command in commands)
    return f"""# bash completion for slipstream, made from --help.
_slipstream() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  COMPREPLY=()
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W "{names} {words(top.options)}" -- "$word"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{chr(10).join(bash_command(command) for command in commands)}
  esac
}}
complete -F _slipstream slipstream
"""


def zsh_text(text):
    """Between brackets and quotes of an _arguments specification."""
    for special in "\\[]:":
        text = text.replace(special, "\\" + special)
    return text


def zsh_action(entry):
    if entry.choices:
        return f":{entry.name.lstrip('-')}:({' '.join(entry.choices)})"
    if entry.kind in FILES:
        return f":{entry.name.lstrip('-')}:_files"
    if entry.kind in DIRECTORIES:
        return f":{entry.name.lstrip('-')}:_files -/"
    return f":{zsh_text(entry.kind)}: " if entry.kind else ""


def zsh_specifications(command):
    for option in command.options:
        for name in filter(None, (option.short, option.name)):
            many = "*" if option.repeats else ""
            yield shlex.quote(f"{many}{name}[{zsh_text(option.text)}]{zsh_action(option)}")
    for position, entry in enumerate(command.positionals, start=1):
        # Nothing to offer is "()": with " ", a message alone, zsh would not offer the options either.
        has_values = entry.choices or entry.kind in (*FILES, *DIRECTORIES)
        action = zsh_action(entry) if has_values else f":{zsh_text(entry.kind or entry.name)}:()"
        yield shlex.quote(f"{position}{action}")


def zsh(top, commands):
    described = "\n".join(f"    {shlex.quote(f'{c.name}:{zsh_text(c.text)}')}" for c in commands)
    cases = "\n".join(
        f"    {command.name})\n      _arguments -s \\\n        "
        + " \\\n        ".join(zsh_specifications(command)) + " ;;" for command in commands)
    return f"""#compdef slipstream
# zsh completion for slipstream, made from --help.
_slipstream() {{
  local -a commands=(
{described}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    _values option {" ".join(shlex.quote(f"{o.name}[{zsh_text(o.text)}]") for o in top.options)}
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{cases}
  esac
}}
_slipstream "$@"
"""


def fish_text(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_option(condition, option):
    line = f"complete -c slipstream -n {fish_text(condition)}"
    if option.short:
        line += f" -s {option.short[1:]}"
    line += f" -l {option.name[2:]} -d {fish_text(option.text)}"
    if option.choices:
        return line + f" -x -a {fish_text(' '.join(option.choices))}"
    if option.kind in DIRECTORIES:
        return line + " -x -a '(__fish_complete_directories)'"
    if option.kind in FILES:
        return line + " -r -F"
    return line + " -x" if option.kind else line


def fish(top, commands):
    lines = ["# fish completion for slipstream, made from --help.", "complete -c slipstream -f"]
    lines += [f"complete -c slipstream -n __fish_use_subcommand -a {command.name} "
              f"-d {fish_text(command.text)}" for command in commands]
    lines += [fish_option("__fish_use_subcommand", option) for option in top.options]
    for command in commands:
        condition = f"__fish_seen_subcommand_from {command.name}"
        if any(entry.kind in FILES for entry in command.positionals):
            lines.append(f"complete -c slipstream -n {fish_text(condition)} -F")
        lines += [fish_option(condition, option) for option in command.options]
    return "\n".join(lines) + "\n"
