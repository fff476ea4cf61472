/** The pages that are made of the code and stand nowhere else: one for each command and setting. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { everyCommand, type OutlineCommand, outlineOf, usageOf } from '../src/cli/outline/outline.ts';
import { buildProgram } from '../src/cli/tree/program.ts';

/** A page in Markdown, by its path on the site without an ending. */
export type Page = { readonly path: string; readonly title: string; readonly text: string };

const escaped = (text: string) => text.replace(/[<>|]/g, (sign) => ({ '<': '&lt;', '>': '&gt;', '|': '\\|' })[sign]!);
const code = (text: string) => `\`${text}\``;

const pathOf = ({ words }: OutlineCommand) => `commands/${words.join('-')}`;

function commandPage(command: OutlineCommand): Page {
  const { words, summary, options, commands, after } = command;
  const rows = options.map(
    ({ names, value, summary: what }) =>
      `| ${code([...names].join(', ') + (value === undefined ? '' : ` ${value}`)).replaceAll('|', '\\|')} | ${escaped(what)} |`,
  );
  const text = [
    `# ${words.join(' ')}`,
    `${escaped(summary.replace(/^./, (letter) => letter.toUpperCase()))}.`,
    `\`\`\`sh\n${usageOf(command)}\n\`\`\``,
    ...(rows.length > 0 ? [['| Option | |', '|---|---|', ...rows].join('\n')] : []),
    ...(commands.length > 0
      ? [commands.map((one) => `- [${one.words.join(' ')}](/${pathOf(one)}/): ${escaped(one.summary)}`).join('\n')]
      : []),
    ...(after === '' ? [] : [`\`\`\`text\n${after}\n\`\`\``]),
    ...(words.length > 1 ? [`[All commands](/commands/reveille/)`] : []),
  ];
  return { path: pathOf(command), title: words.join(' '), text: `${text.join('\n\n')}\n` };
}

/** What `docs/settings.md` says of each variable, with the part that reads it. */
function settings(docs: string): { name: string; part: string; cells: readonly string[] }[] {
  let part = '';
  return readFileSync(join(docs, 'settings.md'), 'utf8')
    .split('\n')
    .flatMap((line) => {
      if (line.startsWith('## ')) part = line.slice(3);
      const name = /^\| `([A-Z][A-Z0-9_]*)` \|/.exec(line)?.[1];
      const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
      return name === undefined ? [] : [{ name, part, cells: cells.slice(2, -1) }];
    });
}

function settingPage({ name, part, cells }: ReturnType<typeof settings>[number]): Page {
  const [unset = '', allowed = '', meaning = ''] = cells;
  const text = [
    `# ${name}`,
    meaning,
    `- **Read by**: ${part}\n- **Default**: ${unset || 'none'}${allowed ? `\n- **Allowed**: ${allowed}` : ''}`,
    `\`\`\`yaml\n# config.yaml in REVEILLE_HOME, or the environment\n${name}: …\n\`\`\``,
    '[All settings](/settings/)',
  ];
  return { path: `settings/${name}`, title: name, text: `${text.join('\n\n')}\n` };
}

/** Pages by the group in which they stand. @param docs the folder of the pages that people wrote */
export async function generatedPages(docs: string): Promise<Map<string, Page[]>> {
  const commands = everyCommand(await outlineOf(buildProgram(process)));
  return new Map([
    ['Commands', commands.map(commandPage)],
    ['Settings', settings(docs).map(settingPage)],
  ]);
}
