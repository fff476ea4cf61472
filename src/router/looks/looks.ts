/**
 * Looks at sources of events that cannot report by themselves, where the agent's machine is defined. Nothing starts
 * because of a look, and no budget counts it (docs/guides/conditions.md).
 */
import { statSync } from 'node:fs';
import type { Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { EventServers } from '../../mcp-host/event-servers.ts';
import { ownerOf } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { LOOK_MS, type LookAnswer, type LookRequest } from '../../wire/look.ts';
import { readableBy, withinMs } from '../checks/checks.ts';
import { NotAllowed, Undecided } from '../checks/finding.ts';
import { Turnstile } from '../checks/turnstile.ts';
import { type Machine, wakeable } from '../machines/machine.ts';
import type { Registry } from '../machines/registry.ts';
import type { Isolation } from '../providers/isolation.ts';
import { birthOf } from '../providers/process-table.ts';
import { lookAtFile } from './file-look.ts';
import { lookAtProcess, type Processes } from './process-look.ts';

/** Looks that run at the same time. A file system that hangs must not use up the threads of all. */
const AT_ONCE = 32;
/** How long a look waits for its turn. */
const QUEUE_MS = 5_000;
/** When chronosd tries again, seconds. */
const RETRY_SECONDS = 15;

export type LooksOptions = {
  registry: Pick<Registry, 'get'>;
  isolation: Isolation;
  clock: Clock;
  log: Logger;
  /** The environment to which variables of machines refer. */
  environment: Readonly<Record<string, string | undefined>>;
  processes?: Processes;
};

const PROCESSES: Processes = { birthOf, userOf };

export class Looks {
  readonly #options: LooksOptions;
  readonly #places: Turnstile;
  #servers: EventServers | undefined;

  constructor(options: LooksOptions) {
    this.#options = options;
    this.#places = new Turnstile(AT_ONCE, options.clock);
  }

  /**
   * @throws ReveilleError `invalid_request` for a source that can never be looked at, `unavailable` when it cannot be
   *   read now; by the state of the machine as for a wake
   */
  async look({ user_id, event, alarm_id, ...last }: LookRequest): Promise<LookAnswer> {
    const { registry, log } = this.#options;
    const userId = ownerOf(user_id);
    const machine = wakeable(registry.get(userId), userId, RETRY_SECONDS);
    try {
      return await this.#places.through(
        QUEUE_MS,
        () => this.#at(machine, event, last),
        () => {
          throw new Undecided('too many looks run at the same time');
        },
      );
    } catch (thrown) {
      if (thrown instanceof ReveilleError) throw thrown;
      if (thrown instanceof NotAllowed) throw new ReveilleError('invalid_request', `event: ${thrown.message}`);
      const isKnown = thrown instanceof Undecided;
      if (!isKnown) log.error({ err: thrown, user_id: userId, alarm_id }, 'a look failed by a defect');
      const why = isKnown ? thrown.message : 'an error in the router, which its log has';
      throw new ReveilleError('unavailable', `event: ${why}`, { retryAfterSeconds: RETRY_SECONDS, cause: thrown });
    }
  }

  async close(): Promise<void> {
    await this.#servers?.close();
  }

  async #at(
    machine: Machine,
    event: LookRequest['event'],
    last: Pick<LookRequest, 'seen' | 'callback'>,
  ): Promise<LookAnswer> {
    const { seen } = last;
    const { isolation, clock, environment, processes = PROCESSES } = this.#options;
    switch (event.source) {
      case 'file': {
        const look = lookAtFile(event.path, { ...readableBy(isolation, machine), now: clock.now() }, seen);
        return await withinMs(clock, LOOK_MS, look);
      }
      case 'process':
        return lookAtProcess(event.pid, { user: systemUserOf(machine), now: clock.now(), processes }, seen);
      case 'mcp': {
        // Few alarms have this source; the others do not load the SDK.
        const { lookAtServer } = await import('./mcp-look.ts');
        const { EventServers } = await import('../../mcp-host/event-servers.ts');
        this.#servers ??= new EventServers(clock);
        return lookAtServer(machine, event, { servers: this.#servers, isolation, environment, now: clock.now() }, last);
      }
    }
  }
}

/**
 * The system user of a machine's processes; `undefined` where the system has none.
 *
 * @throws NotAllowed for a machine elsewhere
 */
function systemUserOf({ provider, spec, userId }: Machine): number | undefined {
  if (provider !== 'process' && provider !== 'command')
    throw new NotAllowed(`processes need a machine of this computer; that of ${userId} has provider ${provider}`);
  const runAs = 'run_as' in spec ? (spec.run_as as { uid: number } | undefined) : undefined;
  return runAs?.uid ?? process.geteuid?.();
}

/** Only Linux shows it. */
function userOf(pid: number): number | undefined {
  return process.platform === 'linux' ? statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid : undefined;
}
