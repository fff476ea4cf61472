/** One link after the other is slow, stalls, drops data, works in one direction only, or resets its connections. */
import type { LinkName } from '../../../support/cluster/links.ts';
import { pause } from '../../../support/cluster/processes.ts';
import { type LinkMode, nameOf } from '../../../support/proxy/link-mode.ts';
import { between, type Fault, type FaultContext } from '../fault.ts';

const MODES: readonly LinkMode[] = [
  { kind: 'drop' },
  { kind: 'half-open', dead: 'back' },
  { kind: 'half-open', dead: 'there' },
  { kind: 'half-open', dead: 'peer' },
  { kind: 'reset' },
  { kind: 'stall' },
  { kind: 'delay', ms: 300 },
];
/** A lost wake is noticed late, so these come first. */
const ORDER: readonly LinkName[] = ['wake', 'delivery', 'database', 'api'];
const SHORTEST_MS = 1000;
const LONGEST_MS = 2000;

export async function impair({ installation, random, round }: FaultContext) {
  const names = ORDER.filter((name) => installation.links.names.includes(name));
  // Every link gets every mode before any of them is repeated.
  const name = names[Math.floor(round / MODES.length) % names.length]!;
  const mode = MODES[round % MODES.length]!;
  installation.links.set(name, mode);
  await pause(between(random, SHORTEST_MS, LONGEST_MS));
  installation.links.heal();
  return { what: `${name} ${nameOf(mode)}`, endedAt: Date.now() };
}

export const links: Fault = {
  name: 'links',
  title: 'links slow, stalled, dropping, half-open, reset',
  stores: ['sqlite', 'postgres'],
  config: () => ({ links: true }),
  short: { strikes: 28, strikingMs: 75_000, recoveringMs: 0, drainMs: 60_000 },
  strike: impair,
};
