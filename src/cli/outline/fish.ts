/** Completion for fish: one line per command and flag, valid after the words of its command. */
import { everyCommand, type OutlineCommand, type OutlineOption, type ValueKind } from './outline.ts';

const quoted = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

/** Fish options for a value: none, any word, or a file. */
const VALUE: Readonly<Record<ValueKind, string>> = {
  file: ' -r -F',
  folder: " -x -a '(__fish_complete_directories)'",
  other: ' -x',
};

function optionLine(below: string, { names, valueKind, summary }: OutlineOption): string {
  const flags = names.map((name) => (name.startsWith('--') ? ` -l ${name.slice(2)}` : ` -s ${name.slice(1)}`));
  return `complete -c reveille -n ${below}${flags.join('')}${valueKind ? VALUE[valueKind] : ''} -d ${quoted(summary)}`;
}

function linesOf({ words, commands, options, valueKind }: OutlineCommand): string[] {
  const below = quoted(`__reveille_is ${quoted(words.slice(1).join(' '))}`);
  return [
    ...commands.map(
      (command) => `complete -c reveille -n ${below} -a ${command.words.at(-1)} -d ${quoted(command.summary)}`,
    ),
    ...options.map((option) => optionLine(below, option)),
    ...(valueKind === 'file' || valueKind === 'folder' ? [`complete -c reveille -n ${below} -F`] : []),
  ];
}

const SCRIPT = `# fish completion for reveille; load it with: reveille completion fish | source
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

function valuedCase({ words, options }: OutlineCommand): string {
  const names = options.filter(({ value }) => value !== undefined).flatMap((option) => option.names);
  const known = names.length === 0 ? 'return 1' : `contains -- $argv[2] ${names.join(' ')}`;
  return `        case ${quoted(words.slice(1).join(' '))}\n            ${known}`;
}

export function fishCompletion(outline: OutlineCommand): string {
  const all = everyCommand(outline);
  const paths = all.slice(1).map(({ words }) => quoted(words.slice(1).join(' ')));
  return SCRIPT.replace('@PATHS@', () => paths.join(' '))
    .replace('@VALUED@', () => all.map(valuedCase).join('\n'))
    .replace('@LINES@', () => all.flatMap(linesOf).join('\n'));
}
