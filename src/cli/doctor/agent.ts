/** Whether this computer's agent could be woken: its registration, its program, and its address. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Presets } from '../../agents/preset.ts';
import { checkFolder, findProgram, programOf } from '../../agents/terminal/program.ts';
import { parseRouterConfig } from '../../router/config.ts';
import { commandSpecSchema } from '../../router/providers/command.ts';
import { descriptorOf } from '../../router/providers/descriptors.ts';
import { httpSpecSchema } from '../../router/providers/http.ts';
import { processSpecSchema } from '../../router/providers/process-spec.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { orUndefined, signOfLife } from '../access/unreachable.ts';
import type { CliContext } from '../context.ts';
import { type Check, STAND_INS } from './check.ts';

export type KnownMachine = { provider: string; spec: unknown; state: string };

const name = 'agent';
const PUT = 'register it again with: reveille machine put';

/** The machine of a user from the router's database, while no router runs. */
export function machineOnDisk({ settings }: CliContext, userId: string): KnownMachine | undefined {
  const path = join(settings.ROUTER_DATA_DIR!, 'router.db');
  if (!existsSync(path)) return undefined;
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(path, { readOnly: true, timeout: 1000 });
    const row = db.prepare('SELECT provider, spec, state FROM machines WHERE user_id = ?').get(userId);
    return row && { provider: String(row.provider), spec: JSON.parse(String(row.spec)), state: String(row.state) };
  } catch {
    // An unreadable file is reported by the check of the databases.
    return undefined;
  } finally {
    db?.close();
  }
}

/** Checks an agent's configuration as far as possible without waking it. */
export async function checkAgent(context: CliContext, machine: KnownMachine): Promise<Check> {
  try {
    return await look(context, machine);
  } catch (error) {
    if (error instanceof ReveilleError) return { name, status: 'broken', detail: error.message, remedy: PUT };
    throw error;
  }
}

async function look(context: CliContext, { provider, spec }: KnownMachine): Promise<Check> {
  const { clock, environment } = context;
  if (provider === 'http') {
    const { url } = httpSpecSchema.parse(spec);
    const sign = await signOfLife(url, clock);
    if (sign === 'answers') return { name, status: 'ok', detail: `answers at ${url}` };
    const detail = sign === 'listens' ? `listens at ${url}, but does not answer` : `cannot be reached at ${url}`;
    return { name, status: 'broken', detail, remedy: 'start it, or give its address with: reveille machine put' };
  }
  if (provider === 'process') {
    const { command, cwd } = processSpecSchema.parse(spec);
    await findProgram(command[0]!, environment.PATH, 'install it, or register its path after --');
    if (cwd !== undefined) await checkFolder(cwd);
    return { name, status: 'ok', detail: `${command[0]} is installed; an alarm starts it` };
  }
  if (provider === 'command') return lookAtTarget(context, spec);
  const { name: starter } = descriptorOf(provider);
  return { name, status: 'note', detail: `not checked: ${starter} starts it when an alarm fires` };
}

async function lookAtTarget({ clock, environment, settings }: CliContext, given: unknown): Promise<Check> {
  const spec = commandSpecSchema.parse(given);
  const config = orUndefined(() => parseRouterConfig({ ...STAND_INS, ...settings, ROUTER_DEV: '1' }));
  if (!config) return { name, status: 'note', detail: 'not checked: correct the settings of the router first' };
  const preset = new Presets(config.presetFolder).get(spec.preset);
  if (preset.kind === 'terminal') {
    const { path } = await programOf(preset, spec, environment, '');
    if (spec.cwd !== undefined) await checkFolder(spec.cwd);
    return { name, status: 'ok', detail: `${spec.preset} is there: ${path}` };
  }
  const url = spec.url ?? ('url' in preset && typeof preset.url === 'string' ? preset.url : undefined);
  if (url === undefined) return { name, status: 'note', detail: `${spec.preset} has no address to check` };
  // Only whether it listens; a request could be an event for it.
  const sign = await signOfLife(new URL(url).origin, clock);
  if (sign !== 'nothing') return { name, status: 'ok', detail: `${spec.preset} listens at ${new URL(url).origin}` };
  const remedy = 'start it, or give its address with: reveille machine put';
  return { name, status: 'broken', detail: `${spec.preset} cannot be reached at ${new URL(url).origin}`, remedy };
}
