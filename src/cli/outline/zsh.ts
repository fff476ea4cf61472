/** Completion for zsh, with a description of each word. */
import { everyCommand, type OutlineCommand } from './outline.ts';

/** A word of the script. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** `name:description`, for `_describe`. */
const described = (name: string, summary: string) => quoted(`${name.replaceAll(':', '\\:')}:${summary}`);

function row({ words, commands, options, valueKind }: OutlineCommand): string {
  const below = commands.map((command) => described(command.words.at(-1)!, command.summary));
  const flags = options.flatMap(({ names, summary }) => names.map((name) => described(name, summary)));
  const valued = options.flatMap(({ names, valueKind: kind }) => (kind ? names.map((name) => `${name} ${kind}`) : []));
  return `    ${quoted(words.slice(1).join(' '))})
      commands=(${below.join(' ')})
      options=(${flags.join(' ')})
      valued=(${valued.join(' ')})
      takes=${valueKind ?? "''"} ;;`;
}

const SCRIPT = `#compdef reveille
# zsh completion for reveille; load it with: eval "$(reveille completion zsh)"
_reveille_at() {
  case "$1" in
@ROWS@
    *) return 1 ;;
  esac
}
_reveille() {
  local -a commands options
  local -A valued
  local takes at='' value='' word
  integer i
  _reveille_at ''
  for ((i = 2; i < CURRENT; i++)); do
    word=$words[i]
    if [[ $word == -- ]]; then value=file; break; fi
    if [[ -n $value ]]; then value=''; continue; fi
    if [[ $word == -* ]]; then
      value=\${valued[$word]:-}
    elif (( \${commands[(I)$word:*]} )); then
      at="\${at:+$at }$word"
      _reveille_at "$at"
    fi
  done
  if [[ -z $value ]]; then
    if [[ $PREFIX == -* ]]; then _describe -o option options; return; fi
    if (( $#commands )); then _describe command commands; return; fi
    value=$takes
  fi
  case $value in
    file) _files ;;
    folder) _files -/ ;;
    *) _message value ;;
  esac
}
if [[ "\${funcstack[1]}" == _reveille ]]; then _reveille "$@"; else compdef _reveille reveille; fi
`;

export function zshCompletion(outline: OutlineCommand): string {
  return SCRIPT.replace('@ROWS@', () => everyCommand(outline).map(row).join('\n'));
}
