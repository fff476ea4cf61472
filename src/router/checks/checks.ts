/**
 * Checks of alarms: whether a wake goes on, decided where the machine is defined, before a budget counts the wake and
 * before anything starts (docs/guides/conditions.md).
 */
import type { Clock } from '../../kit/clock/clock.ts';
import type { WebAccess } from '../../kit/http/web-access.ts';
import type { Logger } from '../../kit/log/log.ts';
import {
  CHECK_QUEUE_MS,
  CHECK_READ_MS,
  type CheckNews,
  type CheckRequest,
  type CheckVerdict,
  REFUSALS,
} from '../../wire/check-verdict.ts';
import { type Check, OUTPUT_MAX_BYTES } from '../../wire/conditions.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { utf8Bytes } from '../../wire/text.ts';
import type { Wake } from '../../wire/wake.ts';
import { WakeDeferred } from '../budget/account.ts';
import { folderOfCommands, type Machine } from '../machines/machine.ts';
import type { Isolation } from '../providers/isolation.ts';
import { type CommandParts, findProgram, lookByCommand, requireProgram } from './command-check.ts';
import { type Finding, NotAllowed, outputOf, Undecided } from './finding.ts';
import { lookAtAddress } from './http-check.ts';
import { lookAtPath } from './path-check.ts';
import { withSecrets } from './secrets.ts';
import { Turnstile } from './turnstile.ts';

/** Commands, and other checks, that run at the same time. */
const COMMANDS = 8;
const READS = 64;
const ARGUMENT_BYTES = 120 * 1024;
const OUTPUT_LEAST_BYTES = 1024;
/** Decisions that are kept for a repetition. */
const DECIDED_MAX = 256;
/** When a wake is tried again whose check found no place. */
const BUSY_MS = 15_000;

export type ChecksOptions = CommandParts & {
  isolation: Isolation;
  web: WebAccess;
  /** The file with the secrets of a user for checks of addresses. */
  secretsOf: (userId: string) => string | undefined;
  clock: Clock;
  log: Logger;
};

/** What was decided. `news`: what the agent gets. */
export type Decision = { readonly verdict: CheckVerdict; readonly news?: CheckNews };

export class Checks {
  readonly #options: ChecksOptions;
  readonly #commands: Turnstile;
  readonly #reads: Turnstile;
  readonly #closing = new AbortController();
  /** Wakes that may have been accepted, the oldest first. */
  readonly #decided = new Map<string, { readonly check: string; readonly decision: Decision }>();

  constructor(options: ChecksOptions) {
    this.#options = options;
    this.#commands = new Turnstile(COMMANDS, options.clock);
    this.#reads = new Turnstile(READS, options.clock);
  }

  /**
   * Decides about a wake. A check that cannot be decided wakes, unless `on_error` is `skip`. A repeated wake that may have
   * been accepted before gets the same decision: a second look could say no, and the target must get the same text.
   *
   * @throws WakeDeferred when too many checks run, ReveilleError `unavailable` when the router stops
   */
  async decide(machine: Machine, wake: Wake, { check, state }: NonNullable<Wake['toCheck']>): Promise<Decision> {
    const { clock, log } = this.#options;
    const key = keyOf(machine, wake);
    const text = JSON.stringify(check);
    const known = this.#decided.get(key);
    if (known?.check === text) return known.decision;
    const began = clock.monotonic();
    const finding = await this.#look(machine, wake, check, state).catch((thrown: unknown): Finding => {
      if (this.#closing.signal.aborted)
        throw new ReveilleError('unavailable', 'the router is shutting down', { retryAfterSeconds: 5, cause: thrown });
      if (thrown instanceof WakeDeferred) throw thrown;
      if (!(thrown instanceof Undecided))
        log.error({ err: thrown, fire_id: wake.fire_id }, 'a check failed by a defect');
      const why = thrown instanceof Undecided ? thrown.message : 'an error in the router, which its log has';
      const skips = check.on_error === 'skip' && !(thrown instanceof NotAllowed);
      const output = thrown instanceof Undecided ? thrown.output : undefined;
      return { yes: !skips, reason: `the check could not be decided: ${why}`, ...(output !== undefined && { output }) };
    });
    const { value } = finding;
    const output = finding.output === undefined ? undefined : outputOf(finding.output, spaceBeside(wake));
    const isForced = !finding.yes && state.must_wake !== undefined;
    const reason = isForced ? `${state.must_wake}; the check said no: ${finding.reason}` : finding.reason;
    const verdict: CheckVerdict = {
      verdict: finding.yes || isForced ? 'wake' : 'skip',
      reason,
      ...(value !== undefined && { value }),
      duration_ms: Math.round(clock.monotonic() - began),
    };
    if (verdict.verdict === 'skip') return { verdict };
    const decision: Decision = { verdict, news: { verdict: 'wake', reason, ...(output !== undefined && { output }) } };
    this.#decided.set(key, { check: text, decision });
    if (this.#decided.size > DECIDED_MAX) this.#decided.delete(this.#decided.keys().next().value!);
    return decision;
  }

  /** The wake was certainly not accepted: its next attempt is decided anew. */
  forget(machine: Pick<Machine, 'userId'>, wake: Wake): void {
    this.#decided.delete(keyOf(machine, wake));
  }

  /**
   * Refuses a check or a command that could never work on a machine, before it is stored.
   *
   * @throws ReveilleError `invalid_request` or `forbidden` with the reason and the remedy
   */
  async refuseUnusable(machine: Machine, { check, run, by_person }: Omit<CheckRequest, 'user_id'>): Promise<void> {
    const { http, path, command } = check ?? {};
    let refused: string = REFUSALS.run;
    try {
      if (run && !by_person && !maySetCommands(machine))
        throw new NotAllowed(
          `the agent of ${machine.userId} may not set commands; let the person set it, or register the machine with --agent-checks commands`,
          { isPermission: true },
        );
      if (run) await requireProgram(this.#options, machine, run.argv[0]!);
      refused = REFUSALS.check;
      if (http) this.#options.web.refuse(this.#withSecrets(machine, http, by_person).http.url);
      if (path) await this.#seePath(machine, path.path, undefined);
      if (!command) return;
      if (!by_person) this.#requirePermission(machine, command);
      const find = () => findProgram(this.#options, machine, command, this.#closing.signal);
      await this.#enter(this.#commands, find);
    } catch (thrown) {
      if (thrown instanceof NotAllowed)
        throw new ReveilleError(thrown.isPermission ? 'forbidden' : 'invalid_request', `${refused}${thrown.message}`);
      if (thrown instanceof ReveilleError) throw new ReveilleError('invalid_request', `${refused}${thrown.message}`);
      // It may be decidable when the alarm fires.
      if (!(thrown instanceof Undecided || thrown instanceof WakeDeferred)) throw thrown;
    }
  }

  /** Ends what runs. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#options.web.close();
  }

  /** @throws NotAllowed unless the agent may set this command as a check */
  #requirePermission({ spec, userId }: Machine, { env = [] }: NonNullable<Check['command']>): void {
    // They may be credentials that the model itself does not see.
    if (env.length > 0)
      throw new NotAllowed(
        `the agent of ${userId} may not name variables in env; let the person set the check, or omit env`,
        { isPermission: true },
      );
    if (maySetCommands({ spec })) return;
    throw new NotAllowed(
      `the agent of ${userId} may not set a command as a check; let the person set it, or register the machine with --agent-checks commands`,
      { isPermission: true },
    );
  }

  async #look(
    machine: Machine,
    wake: Wake,
    { http, path, command }: Check,
    { value, by_person }: NonNullable<Wake['toCheck']>['state'],
  ): Promise<Finding> {
    const signal = this.#closing.signal;
    if (command) {
      if (by_person !== true) this.#requirePermission(machine, command);
      return this.#enter(this.#commands, () => lookByCommand(this.#options, machine, command, wake, signal));
    }
    if (path) return this.#enter(this.#reads, () => this.#seePath(machine, path.path, value));
    const secret = this.#withSecrets(machine, http!, by_person === true);
    const finding = await this.#enter(this.#reads, () =>
      lookAtAddress(this.#options.web, secret.http, value, signal),
    ).catch((thrown: unknown) => {
      // An error may contain the address.
      if (thrown instanceof Error) thrown.message = secret.hide(thrown.message);
      throw thrown;
    });
    const { output, ...rest } = finding;
    return {
      ...rest,
      reason: secret.hide(finding.reason),
      ...(output !== undefined && { output: secret.hide(output) }),
    };
  }

  #withSecrets({ userId }: Machine, http: NonNullable<Check['http']>, isByPerson: boolean) {
    return withSecrets(http, this.#options.secretsOf(userId), isByPerson);
  }

  #enter<T>(turnstile: Turnstile, look: () => Promise<T>): Promise<T> {
    const { clock } = this.#options;
    return turnstile.through(CHECK_QUEUE_MS, look, () => {
      const now = clock.now();
      throw new WakeDeferred('too many checks run at the same time', now + BUSY_MS, now);
    });
  }

  async #seePath(machine: Machine, path: string, last: string | undefined): Promise<Finding> {
    const { isolation, clock } = this.#options;
    const { folder, isReadable } = readableBy(isolation, machine);
    const look = lookAtPath(path, folder, isReadable, last);
    return await withinMs(clock, CHECK_READ_MS, look);
  }
}

/** How much output fits: a program may get message, payload and output as one argument (128 KiB on Linux). */
function spaceBeside({ message, payload }: Wake): number {
  const taken = utf8Bytes(message) + utf8Bytes(payload?.text ?? '');
  return Math.min(OUTPUT_MAX_BYTES, Math.max(OUTPUT_LEAST_BYTES, ARGUMENT_BYTES - taken));
}

/** Whether the agent of a machine may set commands, as its registration says. */
const maySetCommands = ({ spec }: Pick<Machine, 'spec'>) => 'checks' in spec && spec.checks === 'commands';

const keyOf = ({ userId }: Pick<Machine, 'userId'>, { fire_id }: Wake) => `${userId} ${fire_id}`;

/**
 * What the agent of a machine may read on this computer.
 *
 * @throws NotAllowed for a machine elsewhere
 */
export function readableBy(
  isolation: Isolation,
  machine: Machine,
): { folder: string | undefined; isReadable: (real: string) => boolean } {
  const { provider, userId, spec } = machine;
  if (provider !== 'process' && provider !== 'command')
    throw new NotAllowed(`paths need a machine of this computer; that of ${userId} has provider ${provider}`);
  const folder = folderOfCommands(machine);
  const folders = [...(folder === undefined ? [] : [folder]), ...(spec.writable ?? [])];
  return { folder, isReadable: (real) => isolation.isReadable(userId, real, folders) };
}

/** A file system may hang. */
export async function withinMs<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const cancel = clock.after(ms, () => reject(new Undecided(`it took more than ${ms / 1000} s`)));
  try {
    return await Promise.race([work, promise]);
  } finally {
    cancel();
  }
}
