/**
 * `reveille completion`: scripts for bash (from 3.2 on, which macOS has), zsh with a description of each word, and fish. A
 * script contains the command tree as tables and starts no process.
 */
import type { Command } from 'commander';
import type { CliContext } from '../context.ts';
import { choiceFlag } from '../flags/flags.ts';
import {
  everyCommand,
  type OutlineCommand,
  type OutlineOption,
  outlineOf,
  type ValueKind,
} from '../outline/outline.ts';

/** Options of these kinds take a value, by the names that are typed. */
const named = (options: readonly OutlineOption[], ...kinds: readonly ValueKind[]) =>
  options
    .filter(({ valueKind }) => valueKind !== undefined && kinds.includes(valueKind))
    .flatMap(({ names }) => names)
    .join(' ');

/** A command as a row of the table: its possible next words, by the words before. */
function bashRow({ words, commands, options, valueKind }: OutlineCommand): string {
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

const BASH = `# bash completion for reveille; load it with: eval "$(reveille completion bash)"
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

function bashCompletion(outline: OutlineCommand): string {
  return BASH.replace('@ROWS@', () => everyCommand(outline).map(bashRow).join('\n'));
}

const zshWord = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** `name:description`, for `_describe`. */
const described = (name: string, summary: string) => zshWord(`${name.replaceAll(':', '\\:')}:${summary}`);

function zshRow({ words, commands, options, valueKind }: OutlineCommand): string {
  const below = commands.map((command) => described(command.words.at(-1)!, command.summary));
  const flags = options.flatMap(({ names, summary }) => names.map((name) => described(name, summary)));
  const valued = options.flatMap(({ names, valueKind: kind }) => (kind ? names.map((name) => `${name} ${kind}`) : []));
  return `    ${zshWord(words.slice(1).join(' '))})
      commands=(${below.join(' ')})
      options=(${flags.join(' ')})
      valued=(${valued.join(' ')})
      takes=${valueKind ?? "''"} ;;`;
}

const ZSH = `#compdef reveille
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

function zshCompletion(outline: OutlineCommand): string {
  return ZSH.replace('@ROWS@', () => everyCommand(outline).map(zshRow).join('\n'));
}

const fishWord = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

/** Fish options for a value: none, any word, or a file. */
const FISH_VALUE: Readonly<Record<ValueKind, string>> = {
  file: ' -r -F',
  folder: " -x -a '(__fish_complete_directories)'",
  other: ' -x',
};

function fishOption(below: string, { names, valueKind, summary }: OutlineOption): string {
  const flags = names.map((name) => (name.startsWith('--') ? ` -l ${name.slice(2)}` : ` -s ${name.slice(1)}`));
  return `complete -c reveille -n ${below}${flags.join('')}${valueKind ? FISH_VALUE[valueKind] : ''} -d ${fishWord(summary)}`;
}

function fishLines({ words, commands, options, valueKind }: OutlineCommand): string[] {
  const below = fishWord(`__reveille_is ${fishWord(words.slice(1).join(' '))}`);
  return [
    ...commands.map(
      (command) => `complete -c reveille -n ${below} -a ${command.words.at(-1)} -d ${fishWord(command.summary)}`,
    ),
    ...options.map((option) => fishOption(below, option)),
    ...(valueKind === 'file' || valueKind === 'folder' ? [`complete -c reveille -n ${below} -F`] : []),
  ];
}

const FISH = `# fish completion for reveille; load it with: reveille completion fish | source
function __reveille_is -a wanted
    set -l at ''
    set -l skip 0
    for word in (commandline -opc)[2..-1]
        if test $skip = 1
            set skip 0
        else if test "$word" = --
            return 1
        else if string match -q -- '-*' $word
            __reveille_takes "$at" $word; and set skip 1
        else if __reveille_knows (string trim -- "$at $word")
            set at (string trim -- "$at $word")
        end
    end
    test "$at" = "$wanted"
end
function __reveille_knows
    contains -- $argv[1] @PATHS@
end
function __reveille_takes
    switch $argv[1]
@VALUED@
    end
end
complete -c reveille -e
complete -c reveille -f
@LINES@
`;

function fishCase({ words, options }: OutlineCommand): string {
  const names = options.filter(({ value }) => value !== undefined).flatMap((option) => option.names);
  const known = names.length === 0 ? 'return 1' : `contains -- $argv[2] ${names.join(' ')}`;
  return `        case ${fishWord(words.slice(1).join(' '))}\n            ${known}`;
}

function fishCompletion(outline: OutlineCommand): string {
  const all = everyCommand(outline);
  const paths = all.slice(1).map(({ words }) => fishWord(words.slice(1).join(' ')));
  return FISH.replace('@PATHS@', () => paths.join(' '))
    .replace('@VALUED@', () => all.map(fishCase).join('\n'))
    .replace('@LINES@', () => all.flatMap(fishLines).join('\n'));
}

const SHELLS: Readonly<Record<string, (outline: OutlineCommand) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};

/** Prints the script of a shell. */
export async function completion({ out }: CliContext, program: Command, given: string): Promise<void> {
  const shell = choiceFlag('the shell', given, Object.keys(SHELLS))!;
  const script = SHELLS[shell]!(await outlineOf(program));
  out.result({ shell, script }, script.trimEnd());
}
