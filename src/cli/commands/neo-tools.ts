/** `reveille neo tools`: what Neo's model can call, what only the executor may, and what is wrong with either. */
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { SurfaceView } from '../../wire/tool-surface.ts';
import type { CliContext } from '../context.ts';
import { columns } from '../screens/columns.ts';
import { lookOf } from '../screens/look.ts';
import type { Look } from '../screens/render.ts';
import { toolOptions } from '../up/tool-options.ts';

/** As much of a description as a line can hold. */
const SHOWN = 300;

/** The first sentence of a description. */
function gist(description: string): string {
  const line = oneLine(description.slice(0, SHOWN).toWellFormed().replace(/\s+/g, ' ').trim());
  return /^.*?[.!?](?= |$)/.exec(line)?.[0] ?? line;
}

function count(n: number, one: string): string {
  return `${n} ${one}${n === 1 ? '' : 's'}`;
}

function table(rows: string[][], look: Look): string[] {
  const [heading, ...lines] = columns(rows, look.width);
  return [look.paint('dim', heading!), ...lines];
}

export function renderSurface({ tools, escalated, warnings }: SurfaceView, look: Look): string[] {
  const lines = [
    tools.length === 0
      ? 'The model can call nothing.'
      : `The model can call ${look.paint('bold', count(tools.length, 'function'))}:`,
  ];
  if (tools.length > 0) {
    const rows = tools.map(({ name, description }) => [name, gist(description)]);
    lines.push('', ...table([['FUNCTION', 'WHAT IT DOES'], ...rows], look));
  }
  if (escalated.length > 0) {
    const rows = escalated.map(({ name, reason }) => [name, reason]);
    lines.push('', 'Through core_execute only:', '', ...table([['TOOL', 'BECAUSE'], ...rows], look));
  }
  for (const warning of warnings) lines.push('', `${look.paint('yellow', 'Warning')}: ${oneLine(warning)}`);
  return lines;
}

/** There is nothing to be asked while only the surface is looked at. */
const notHere = () => Promise.reject(new ReveilleError('unavailable', 'only `reveille neo` makes calls'));

export async function neoTools(context: CliContext): Promise<void> {
  const { spawnTools } = await import('../../neo/tools/start-host.ts');
  const options = await toolOptions(context);
  context.out.progress('Starting the servers of the manifest…');
  const surface = await spawnTools({
    ...options,
    recall: notHere,
    ...(options.config.executor && { delegate: notHere }),
  });
  try {
    const view = surface.describe();
    context.out.result(view, renderSurface(view, lookOf(context)));
  } finally {
    await surface.close();
  }
}
