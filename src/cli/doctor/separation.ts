/** What the doctor says of walls: what is separated on this computer, by what, and what is not. */

import { z } from 'zod';
import { NO_PLACES, Walls } from '../../kit/process/separation.ts';
import { cannotRunAs } from '../../router/providers/separation.ts';
import { parseSettings, separationSetting } from '../../wire/settings.ts';
import type { CliContext } from '../context.ts';
import { type Check, orUndefined } from './check.ts';

/** What it is worth where nothing is separated: who said `off` knows. */
const STATUS = { required: 'broken', auto: 'warning', off: 'note' } as const;

export type SeparationFacts = {
  readonly mode: 'auto' | 'required' | 'off';
  /** What holds the walls; `undefined` when nothing does. */
  readonly by: 'bubblewrap' | 'sandbox-exec' | undefined;
  /** Why nothing does. */
  readonly why: string | undefined;
  /** Why machines cannot be given another user id; `undefined` when they can. */
  readonly noRunAs: string | undefined;
};

/** @returns `undefined` for a setting that is wrong, which another check reports */
export async function separationFacts(context: CliContext): Promise<SeparationFacts | undefined> {
  const schema = z.object({ REVEILLE_SEPARATION: separationSetting });
  const mode = orUndefined(() => parseSettings(schema, context.settings))?.REVEILLE_SEPARATION;
  if (mode === undefined) return undefined;
  // Only what holds walls is asked here; nothing is hidden, and nothing made.
  const means = await new Walls(mode, NO_PLACES, context.environment.PATH).means();
  const by = means.kind === 'bubblewrap' ? 'bubblewrap' : means.kind === 'seatbelt' ? 'sandbox-exec' : undefined;
  return { mode, by, why: means.kind === 'none' ? means.why : undefined, noRunAs: cannotRunAs() };
}

const HIDDEN = "the home, the key of who approves, the session bus, other machines' folders and other processes";

/** Whether machines and MCP servers run behind walls here. */
export async function checkSeparation(context: CliContext): Promise<Check | undefined> {
  const name = 'separation';
  const facts = await separationFacts(context);
  if (!facts) return undefined;
  const { mode, by, why } = facts;
  if (by !== undefined)
    return {
      name,
      status: 'ok',
      detail: `machines and MCP servers run behind ${by}: ${HIDDEN} are hidden from them; other files and the network are not`,
    };
  const detail = `machines and MCP servers run as this user and can read its files, secrets included: ${why}`;
  const remedy =
    mode === 'off'
      ? 'take REVEILLE_SEPARATION=off away'
      : 'on Linux, install bubblewrap and allow user namespaces; see docs/operations.md';
  return { name, status: STATUS[mode], detail, remedy };
}
