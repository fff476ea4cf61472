/** The check of isolation: the mechanism on this computer, and its limits. */

import { z } from 'zod';
import { NO_SANDBOX_PATHS, Sandbox } from '../../kit/process/isolation.ts';
import { cannotRunAs } from '../../router/providers/isolation.ts';
import { isolationSetting, parseSettings } from '../../wire/settings.ts';
import type { CliContext } from '../context.ts';
import { EXPERIMENTAL } from '../service/experimental.ts';
import { type Check, orUndefined } from './check.ts';

/** The status without isolation. `off` is the operator's choice. */
const STATUS = { required: 'broken', auto: 'warning', off: 'note' } as const;

export type IsolationFacts = {
  readonly mode: 'auto' | 'required' | 'off';
  /** The mechanism of the sandbox; `undefined` without one. */
  readonly by: 'bubblewrap' | 'sandbox-exec' | undefined;
  /** Why there is none. */
  readonly why: string | undefined;
  /** Why machines cannot have another user id; `undefined` when they can. */
  readonly noRunAs: string | undefined;
  /** Whether this user's daemons run as root. */
  readonly isRoot: boolean;
};

/** @returns `undefined` for a wrong setting, which another check reports */
export async function isolationFacts(context: CliContext): Promise<IsolationFacts | undefined> {
  const schema = z.object({ REVEILLE_SEPARATION: isolationSetting });
  const mode = orUndefined(() => parseSettings(schema, context.settings))?.REVEILLE_SEPARATION;
  if (mode === undefined) return undefined;
  // Only the mechanism is tried here.
  const means = await new Sandbox(mode, NO_SANDBOX_PATHS, context.environment.PATH).mechanism();
  const by = means.kind === 'bubblewrap' ? 'bubblewrap' : means.kind === 'seatbelt' ? 'sandbox-exec' : undefined;
  const isRoot = process.geteuid?.() === 0;
  return { mode, by, why: means.kind === 'none' ? means.why : undefined, noRunAs: cannotRunAs(), isRoot };
}

const WRITABLE = 'they write to their working folder, their data folders, a private /tmp and what --writable names';
const HIDDEN = "the home, the approver's key, the session bus, other machines' folders and other processes are hidden";
const AS_ROOT =
  'run Reveille as an ordinary user (reveille service install as that user), or give each machine its own user (machine put --run-as)';

/** What isolates machines and MCP servers here. Pure. */
export function isolationCheck({ mode, by, why, isRoot }: IsolationFacts): Check {
  const name = 'isolation';
  if (by === undefined) {
    const detail = isRoot
      ? `machines and MCP servers run as root, without a sandbox: they can read and change everything on this computer: ${why}`
      : `machines and MCP servers run as this user, without a sandbox, and can read its files, secrets included: ${why}`;
    const remedy =
      mode === 'off'
        ? 'remove REVEILLE_SEPARATION=off'
        : 'on Linux, install bubblewrap and allow user namespaces; see: reveille docs isolation';
    return { name, status: STATUS[mode], detail, remedy: isRoot ? `${remedy}; ${AS_ROOT}` : remedy };
  }
  if (by === 'sandbox-exec')
    return {
      name,
      status: 'note',
      detail: `machines and MCP servers run in a sandbox of sandbox-exec, which is ${EXPERIMENTAL}: ${HIDDEN}; ${WRITABLE}`,
      remedy: 'do not rely on it; run programs that you do not trust on another computer or in a container',
    };
  if (isRoot)
    return {
      name,
      status: 'warning',
      detail: `the daemons run as root: machines and MCP servers run in a sandbox of bubblewrap with root's rights. The system is read-only for them; ${WRITABLE}. A fault of the kernel or of bubblewrap would give them the computer`,
      remedy: AS_ROOT,
    };
  return {
    name,
    status: 'ok',
    detail: `machines and MCP servers run in a sandbox of bubblewrap as this user: the system is read-only, ${HIDDEN}; ${WRITABLE}. They can read other files of this user and use the network`,
  };
}

/** Whether machines and MCP servers are isolated here. */
export async function checkIsolation(context: CliContext): Promise<Check | undefined> {
  const facts = await isolationFacts(context);
  return facts && isolationCheck(facts);
}
