/** Runs one world: faults, healing, the end of every occurrence, and the verdict. */
import { INTERRUPTED } from '../../../src/chronos/alarm/settlement.ts';
import { type Contents, readContents } from './durable.ts';
import { Misfortunes } from './misfortune.ts';
import type { Mutant } from './mutant.ts';
import { checkLists, recover } from './recovery.ts';
import { drawScenario, type Scenario } from './scenario.ts';
import { judgeWorld } from './verdict.ts';
import { World } from './world.ts';

export type SimulationOptions = { seed: number; mutant?: Mutant | undefined; onLine?: (line: string) => void };

export type Outcome = {
  seed: number;
  /** Every sentence is a broken promise. */
  violations: string[];
  /** A hash of all events: the same for every run of the seed. */
  digest: string;
  scenario: Scenario;
  simulatedMs: number;
  events: number;
  alarms: number;
  deliveries: number;
  turns: number;
  /** Repeated wakes of an occurrence whose turn was accepted. */
  duplicates: number;
  /** Number of faults of each kind. */
  faults: Record<string, number>;
  /** Number of rare events of each kind. */
  rareEvents: Record<string, number>;
};

/** A drain may take its limit and the time to give up, and is observed for some more seconds. */
const CLOSE_MS = 20_000;

/** Runs one seed from the beginning of its world to the verdict. */
export async function simulate({ seed, mutant, onLine }: SimulationOptions): Promise<Outcome> {
  const scenario = drawScenario(seed);
  const world = await World.open({ scenario, mutant, onLine });
  try {
    const { timeline, trace, watch, weather, clients, replicas, router } = world;
    trace.note('world', `seed ${seed}`, JSON.stringify(scenario));
    for (const { owner, publicKey } of clients) {
      const enrolment = { source: 'enrolled', enrolledAt: scenario.start, revokedAt: null } as const;
      await world.durable.store.enrollKey({ owner, label: owner, publicKey, ...enrolment });
    }
    for (const replica of replicas) replica.start();
    const misfortunes = new Misfortunes(world);
    misfortunes.begin();
    for (const client of clients) void client.live();
    await timeline.runUntil(scenario.troubleMs);

    await misfortunes.end();
    for (const client of clients) client.rest();
    const healedAt = world.databaseNow();
    await recover(world, misfortunes.jumpSpanMs);

    for (const replica of replicas) replica.drain();
    await timeline.runUntil(timeline.now + CLOSE_MS);
    for (const { isUp } of replicas) if (isUp) watch.violation('a replica did not drain in time');

    const contents = await readContents(world.durable.store, scenario.owners);
    checkLists(world, contents.states);
    const violations = [
      ...watch.violations,
      ...judgeWorld(world, contents, { healedAt, jumpMs: misfortunes.jumpSpanMs }),
    ];
    return {
      seed,
      violations,
      digest: trace.digest,
      scenario,
      simulatedMs: timeline.now,
      events: timeline.events,
      alarms: contents.states.length,
      deliveries: watch.deliveries,
      turns: router.turns,
      duplicates: router.duplicates,
      faults: Object.fromEntries(weather.counts),
      rareEvents: { ...Object.fromEntries(watch.rareEvents), ...rareEventsIn(contents) },
    };
  } finally {
    await world.durable.close();
  }
}

/** Rare events that the final state shows. */
function rareEventsIn({ states, attempts }: Contents): Record<string, number> {
  const count = (among: readonly unknown[]) => among.length;
  const made = (outcome: string) => count(attempts.filter((attempt) => attempt.outcome === outcome));
  return {
    'attempt delivered': made('delivered'),
    'attempt failed': made('failed'),
    'attempt with unknown outcome': made('unknown'),
    'attempt interrupted': count(attempts.filter(({ error }) => error === INTERRUPTED)),
    'occurrence missed': made('missed'),
    'series caught up': count(attempts.filter(({ missedCount }) => missedCount > 0)),
    'alarm given up': count(states.filter(({ alarm }) => alarm.status === 'failed')),
    'alarm cancelled': count(states.filter(({ alarm }) => alarm.status === 'cancelled')),
    'alarm left paused': count(states.filter(({ alarm }) => alarm.status === 'paused')),
  };
}
