/** The commands of the documentation, and the examples in the help of each command. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { everyCommand, outlineOf } from '../../../src/cli/outline/outline.ts';
import { buildProgram } from '../../../src/cli/tree/program.ts';

export const ROOT = join(import.meta.dirname, '..', '..', '..');

/** Commands of one block of a page, or the example of a command. */
export type Shown = {
  /** `docs/start/chat.md:6`, or `reveille alarm set --help`. */
  readonly at: string;
  /** Complete commands, with continued lines and here-documents. */
  readonly commands: readonly string[];
};

const FENCE = /^ *```(\w*)/;
const OF_SHELL = new Set(['', 'sh', 'bash', 'shell', 'console']);
/** A block without a language is shell text if a line begins with one of these programs. */
const OURS = /^\s*(?:\$ )?(?:[A-Z_]+=\S* )*(?:reveille|npx|npm) /m;

function commandsIn(lines: readonly string[]): string[] {
  const text = lines.join('\n').replace(/\\\n\s*/g, ' ');
  const commands = text.match(/^.*<<'(\w+)'.*\n[\s\S]*?^\1$|^for [\s\S]*?^done.*$|^.+$/gm) ?? [];
  return commands.map((command) => command.trim()).filter((command) => !command.startsWith('#'));
}

function blocksOf(page: string): Shown[] {
  const blocks: Shown[] = [];
  let open: { language: string; line: number; lines: string[] } | undefined;
  for (const [at, line] of readFileSync(join(ROOT, page), 'utf8').split('\n').entries()) {
    const fence = FENCE.exec(line);
    if (fence === null) open?.lines.push(line);
    else if (open === undefined) open = { language: fence[1]!, line: at + 1, lines: [] };
    else {
      if (OF_SHELL.has(open.language) && OURS.test(open.lines.join('\n')))
        blocks.push({ at: `${page}:${open.line}`, commands: commandsIn(open.lines) });
      open = undefined;
    }
  }
  return blocks;
}

/** The blocks of README.md and docs/ with commands of Reveille. Decisions may have old commands. */
export function shownOnPages(): Shown[] {
  const pages = globSync(['README.md', 'docs/**/*.md'], { cwd: ROOT, exclude: ['docs/internals/decisions/**'] });
  return pages.toSorted().flatMap(blocksOf);
}

/** The examples at the end of the help of each command; pages of the site have them, too. */
export async function shownInHelp(): Promise<Shown[]> {
  const commands = everyCommand(await outlineOf(buildProgram(process)));
  return commands.flatMap(({ words: args, after }) =>
    [...after.matchAll(/^ *\$ (.*)$/gm)].map(([, line]) => ({ at: `${args.join(' ')} --help`, commands: [line!] })),
  );
}
