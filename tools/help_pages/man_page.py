"""Man pages (mdoc) from --help, with the prose that --help has no room for."""

import re


def escaped(text):
    """Text that mdoc takes as text: no escapes of its own, no macros at the beginning."""
    text = text.replace("\\", "\\e")
    return "\\&" + text if text.startswith((".", "'")) else text


def argument(text):
    """Of a macro: words that are macros themselves, and punctuation, are taken literally."""
    return '"' + escaped(text).replace('"', "\\(dq") + '"'


def sentence(text):
    return escaped(text if text.endswith((".", ":")) else text + ".")


def option_lines(option):
    names = f".It Fl {argument(option.name[1:])}"
    if option.short:
        names += f" , Fl {argument(option.short[1:])}"
    if option.kind:
        names += f" Ar {argument(option.kind)}"
    lines = [names, sentence(option.text)]
    if option.repeats and "more than once" not in option.text:
        lines.append("Takes several.")
    if option.choices:
        lines.append(sentence("One of " + ", ".join(option.choices)))
    if option.default:
        lines.append(sentence(f"The default is {option.default}"))
    if option.variable:
        lines += [".Pp", "Also read from", f".Ev {argument(option.variable)} ."]
    return lines


def positional_word(positional):
    return positional.kind or positional.name.upper()


def synopsis(command):
    lines = [".Nm slipstream", f".Cm {argument(command.name)}"]
    for positional in command.positionals:
        lines.append(f".{'Ar' if positional.required else 'Op Ar'} "
                     f"{argument(positional_word(positional))}")
    return [*lines, ".Op Ar options"]


def tagged(entries):
    return [".Bl -tag -width Ds", *entries, ".El"] if entries else []


def command_page(command, date, prose):
    """slipstream-COMMAND.1; prose: further lines of its description, or ""."""
    positionals = [line for p in command.positionals
                   for line in (f".It Ar {argument(positional_word(p))}", sentence(p.text))]
    options = [line for option in command.options for line in option_lines(option)]
    return "\n".join([
        date, f".Dt SLIPSTREAM-{command.name.upper()} 1", ".Os",
        ".Sh NAME", f".Nm slipstream-{command.name}", f".Nd {argument(command.text)}",
        ".Sh SYNOPSIS", *synopsis(command),
        ".Sh DESCRIPTION", sentence(command.text), *prose.splitlines(), *tagged(positionals),
        ".Sh OPTIONS", *tagged(options),
        ".Sh SEE ALSO", ".Xr slipstream 1", ""])


def program_page(top, commands, template):
    """slipstream.1: the template, with lines @SYNOPSIS@, @COMMANDS@, @OPTIONS@ and @PAGES@ filled in."""
    names = sorted(command.name for command in commands)
    parts = {
        "SYNOPSIS": [line for command in commands for line in synopsis(command)],
        "COMMANDS": tagged([line for command in commands
                            for line in (f".It Cm {argument(command.name)}",
                                         sentence(command.text))]),
        "OPTIONS": tagged([line for option in top.options for line in option_lines(option)]),
        "PAGES": [f".Xr slipstream-{name} 1{' ,' if name != names[-1] else ''}" for name in names],
    }
    return re.sub(r"^@(\w+)@$", lambda found: "\n".join(parts[found[1]]), template, flags=re.M)


def date_of(template):
    return template.splitlines()[0]
