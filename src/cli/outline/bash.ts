/** Completion for bash from 3.2 on, which macOS has. The script contains the command tree as tables and starts no process. */
import { everyCommand, type OutlineCommand, type OutlineOption, type ValueKind } from './outline.ts';

/** Options of these kinds take a value, by the names that are typed. */
const named = (options: readonly OutlineOption[], ...kinds: readonly ValueKind[]) =>
  options
    .filter(({ valueKind }) => valueKind !== undefined && kinds.includes(valueKind))
    .flatMap(({ names }) => names)
    .join(' ');

/** A command as a row of the table: its possible next words, by the words before. */
function row({ words, commands, options, valueKind }: OutlineCommand): string {
  const names = commands.map(({ words: below }) => below.at(-1)).join(' ');
  const fields = [
    `commands='${names}'`,
    `options='${options.flatMap((option) => option.names).join(' ')}'`,
    `files='${named(options, 'file')}'`,
    `folders='${named(options, 'folder')}'`,
    `others='${named(options, 'other')}'`,
    `takes='${valueKind ?? ''}'`,
  ];
  return `    '${words.slice(1).join(' ')}') ${fields.join(' ')} ;;`;
}

const SCRIPT = `# bash completion for reveille; load it with: eval "$(reveille completion bash)"
_reveille_at() {
  case "$1" in
@ROWS@
    *) return 1 ;;
  esac
}
_reveille_has() {
  case " $1 " in *" $2 "*) return 0 ;; esac
  return 1
}
_reveille() {
  local commands options files folders others takes
  local cur="\${COMP_WORDS[COMP_CWORD]}" at='' value='' word i IFS=$' \\t\\n'
  COMPREPLY=()
  _reveille_at ''
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    if [ "$word" = '=' ]; then continue; fi
    if [ "$word" = '--' ]; then value=file; break; fi
    if [ -n "$value" ]; then value=''; continue; fi
    case "$word" in
      -*)
        if _reveille_has "$files" "$word"; then value=file
        elif _reveille_has "$folders" "$word"; then value=folder
        elif _reveille_has "$others" "$word"; then value=other
        fi ;;
      *) if _reveille_has "$commands" "$word"; then at="\${at:+$at }$word"; _reveille_at "$at"; fi ;;
    esac
  done
  if [ "$cur" = '=' ]; then cur=''; fi
  if [ -z "$value" ]; then
    case "$cur" in
      -*) COMPREPLY=($(compgen -W "$options" -- "$cur")); return ;;
    esac
    if [ -n "$commands" ]; then COMPREPLY=($(compgen -W "$commands" -- "$cur")); return; fi
    value="$takes"
  fi
  IFS=$'\\n'
  case "$value" in
    file) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$cur")) ;;
    folder) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$cur")) ;;
  esac
}
complete -F _reveille reveille
`;

export function bashCompletion(outline: OutlineCommand): string {
  return SCRIPT.replace('@ROWS@', () => everyCommand(outline).map(row).join('\n'));
}
