/** Two different faults at once, drawn at random. */
import type { StoreKind } from '../../../support/cluster/cluster.ts';
import { type Fault, pick } from '../fault.ts';
import { kill } from './kill.ts';
import { links } from './links.ts';
import { postgres } from './postgres.ts';
import { stop } from './stop.ts';

function ingredients(store: StoreKind): readonly Fault[] {
  return [kill, stop, links, postgres].filter(({ stores }) => stores.includes(store));
}

export const mixed: Fault = {
  name: 'mixed',
  title: 'two of these at once',
  stores: ['sqlite', 'postgres'],
  config: (store) => ({ ...stop.config?.(store), replicas: store === 'sqlite' ? 1 : 3, links: true }),
  short: { strikes: 4, strikingMs: 15_000, recoveringMs: 0, drainMs: 60_000 },
  async strike(scene) {
    const all = ingredients(scene.installation.plan.store);
    const first = pick(scene.random, all);
    const second = pick(
      scene.random,
      all.filter((fault) => fault !== first),
    );
    const round = Math.floor(scene.random() * 1000);
    const strikes = await Promise.all([first, second].map((fault) => fault.strike({ ...scene, round })));
    return {
      what: strikes.map(({ what }) => what).join(' and '),
      endedAt: Math.max(...strikes.map(({ endedAt }) => endedAt)),
    };
  },
};
