/** Provider `fly`: a Fly Machine. The router reaches its private address from within the Fly network. */
import { isIP } from 'node:net';
import type { Dispatcher } from 'undici';
import { z } from 'zod';
import { bracketed } from '../../kit/http/origin.ts';
import type { Logger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type Descriptor, healthPath, healthPathFact, healthPathFlag, port, portFact, portFlag } from './descriptor.ts';
import type { Provider, ProviderMachine } from './provider.ts';
import { type ApiAnswer, loadAgents, type OpenAgent, ProviderApi, TransientProviderError } from './provider-api.ts';
import { plain, shownPath } from './redaction.ts';
import { RemoteProvider, type RemoteProviderOptions } from './remote.ts';
import type { Action, RemoteDriver, RemoteObservation } from './remote-driver.ts';

const SLEEPS = ['suspend', 'stop'] as const;

const flySpecSchema = z.strictObject({
  app: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be the name of a Fly app: a-z 0-9 -'),
  machine_id: z.string().regex(/^[a-zA-Z0-9]{1,64}$/, 'must be the id of a Fly machine: letters and digits'),
  /** The port of the daemon on the machine's private address; by default 8080. */
  port: port.optional(),
  /** How it is put to sleep; by default `suspend`. */
  sleep: z.enum(SLEEPS).optional(),
  /** The nonce of a lease that the operator holds on the machine. */
  lease_nonce: z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/, 'must be 1 to 128 visible ASCII characters')
    .optional(),
  health_path: healthPath,
});
export type FlySpec = z.output<typeof flySpecSchema>;

export const FLY: Descriptor<'fly', typeof flySpecSchema> = {
  name: 'fly',
  about: 'a machine to start',
  schema: flySpecSchema,
  shown: { app: plain, machine_id: plain, port: plain, sleep: plain, health_path: shownPath },
  identity: ['app', 'machine_id'],
  flags: [
    { usage: '--app <name>', about: 'the app', member: 'app', kind: 'text', needed: 'the name of the Fly app' },
    {
      usage: '--machine-id <id>',
      about: 'the machine',
      member: 'machine_id',
      kind: 'text',
      needed: 'the id of the Fly machine',
    },
    portFlag,
    {
      usage: '--sleep <how>',
      about: 'suspend or stop (default: suspend)',
      member: 'sleep',
      kind: { choice: SLEEPS },
    },
    {
      usage: '--lease-nonce <nonce>',
      about: 'the nonce of a lease that you hold on the machine',
      member: 'lease_nonce',
      kind: 'text',
    },
    healthPathFlag,
  ],
  facts: (spec) => [['where', `${spec.app} ${spec.machine_id}`], portFact(spec), healthPathFact(spec)],
  async create({ awake, config, probe, clock, log }) {
    const openAgent = await loadAgents();
    const { flyApiToken: apiToken, flyApiUrl: apiUrl } = config;
    return createFlyProvider({ awake: awake('fly'), probe, clock, log, openAgent, apiToken, apiUrl });
  },
};

/** The default port of the daemon; Neo's own. */
const PORT = 8080;
/** The longest wait for a state, in seconds; the API allows 60. */
const WAIT_SECONDS = 30;
/** The API allows an action once per second, three times in a burst. */
const ACTION_EVERY_MS = 1000;

type FlyTarget = ProviderMachine<FlySpec>;

/** The token and its parts: an answer must not repeat any of them. */
function partsOf(token: string): string[] {
  return [token, ...token.split(/[\s,]+/).filter((part) => part !== 'FlyV1')];
}

class FlyDriver implements RemoteDriver<FlySpec> {
  // Fly's proxy may stop a machine without traffic, and a stopped machine does not refuse connections.
  readonly trustMs = 5000;
  // The API allows five queries per second.
  readonly firstPauseMs = 250;
  readonly longestPauseMs = 1000;
  // Fly is eventually consistent: one part may not know yet what another has accepted.
  readonly staleMs = 5000;
  readonly #agent: Dispatcher;
  readonly #api: ProviderApi;
  readonly #hasToken: boolean;
  readonly #log: Logger;

  constructor({ apiToken, apiUrl, clock, log, openAgent }: FlyProviderOptions) {
    this.#agent = openAgent();
    this.#hasToken = apiToken !== undefined;
    this.#log = log;
    this.#api = new ProviderApi({
      dispatcher: this.#agent,
      url: apiUrl,
      name: 'the Fly API',
      headers: apiToken === undefined ? {} : { authorization: `Bearer ${apiToken}` },
      clock,
      secrets: apiToken === undefined ? [] : partsOf(apiToken),
    });
  }

  async observe(target: FlyTarget, signal: AbortSignal): Promise<RemoteObservation> {
    const { app, machine_id } = target.spec;
    const named = `the Fly machine ${machine_id}`;
    const answer = await this.#request('GET', target, '', signal);
    if (answer.status === 404)
      return { state: 'lost', text: `there is no machine ${machine_id} in the Fly app ${app}` };
    if (answer.status !== 200) throw this.#failure(answer, `the state of ${named} cannot be read`, target);
    const parsed = flyMachineSchema.safeParse(this.#api.jsonOf(answer));
    if (!parsed.success)
      throw new TransientProviderError(`${this.#api.name} answered with something that is not a machine`);
    return this.#observationOf(parsed.data, named, target);
  }

  close(): void {
    void this.#agent.destroy();
  }

  #observationOf(machine: FlyMachineView, named: string, target: FlyTarget): RemoteObservation {
    const { state } = machine;
    const text = `${named} is ${this.#api.scrub(state)}`;
    const end = this.#action(target, 'stop');
    switch (conditionOf(state)) {
      case 'up': {
        const address = machine.private_ip ?? '';
        const sleep = target.spec.sleep === 'stop' ? end : this.#suspension(target, end);
        if (isIP(address) === 0)
          return { state: 'up', text: `${text}, but has no private address`, url: undefined, sleep, end };
        const url = `http://${bracketed(address)}:${target.spec.port ?? PORT}`;
        return { state: 'up', text, url, sleep, end };
      }
      case 'rising':
        return { state: 'rising', text, wait: (signal) => this.#untilStarted(target, signal), end };
      case 'down':
        return {
          state: 'down',
          text: text + this.#api.scrub(endingOf(machine)),
          start: this.#action(target, 'start'),
        };
      case 'lost':
        return { state: 'lost', text };
      case 'changing':
        return { state: 'changing', text };
    }
  }

  #request(
    method: 'GET' | 'POST',
    { spec }: FlyTarget,
    path: string,
    signal: AbortSignal,
    limitMs?: number,
  ): Promise<ApiAnswer> {
    if (!this.#hasToken) {
      const remedy = 'set it in the environment of the router; create one with: fly tokens create deploy';
      throw new ReveilleError('unavailable', `FLY_API_TOKEN is not set; ${remedy}`);
    }
    const headers = spec.lease_nonce === undefined ? {} : { 'fly-machine-lease-nonce': spec.lease_nonce };
    const call = { method, path: `/v1/apps/${spec.app}/machines/${spec.machine_id}${path}`, signal, headers };
    return this.#api.call(limitMs === undefined ? call : { ...call, limitMs });
  }

  /** Resolves with whether the machine has started by the end of the wait. */
  async #untilStarted(target: FlyTarget, signal: AbortSignal): Promise<boolean> {
    const path = `/wait?state=started&timeout=${WAIT_SECONDS}`;
    const answer = await this.#request('GET', target, path, signal, (WAIT_SECONDS + 5) * 1000);
    // 408: not yet. 400: it is no longer on the way to that state.
    if (answer.status === 429 || answer.status >= 500) throw this.#failure(answer, '', target);
    return answer.status === 200;
  }

  #action(target: FlyTarget, action: 'start' | 'stop'): Action {
    return async (signal) => {
      const answer = await this.#request('POST', target, `/${action}`, signal);
      if (answer.status < 200 || answer.status > 299)
        throw this.#failure(answer, `the Fly machine ${target.spec.machine_id} did not ${action}`, target);
    };
  }

  /** Suspends. Stops a machine that cannot be suspended (too much memory, a schedule, a GPU). */
  #suspension(target: FlyTarget, end: Action): Action {
    return async (signal) => {
      const answer = await this.#request('POST', target, '/suspend', signal);
      if (answer.status >= 200 && answer.status <= 299) return;
      const failure = this.#failure(answer, `the Fly machine ${target.spec.machine_id} did not suspend`, target);
      if (failure instanceof TransientProviderError && answer.status !== 412) throw failure;
      this.#log.info(
        { user_id: target.userId, reason: failure.message },
        'the machine cannot be suspended; stopping it',
      );
      await end(signal);
    };
  }

  #failure(answer: ApiAnswer, what: string, { token, spec }: FlyTarget): ReveilleError {
    const { status } = answer;
    const secrets = [token, spec.lease_nonce ?? ''];
    // 409: another client holds a lease; 412: wrong state; 429: too often. All of them are temporary.
    if (status === 409 || status === 412 || status === 429)
      return this.#api.transient(answer, { patient: true, atLeastMs: ACTION_EVERY_MS, secrets });
    if (status === 408 || status >= 500) return this.#api.transient(answer, { secrets });
    return this.#api.refusal(what, answer, secrets);
  }
}

type FlyProviderOptions = Omit<RemoteProviderOptions<FlySpec>, 'name' | 'driver'> & {
  /** `FLY_API_TOKEN`; without it no machine can be woken. */
  apiToken: string | undefined;
  /** The API's base address, public or private. */
  apiUrl: string;
  openAgent: OpenAgent;
};

export function createFlyProvider(options: FlyProviderOptions): Provider {
  return new RemoteProvider<FlySpec>({ ...options, name: 'fly', driver: new FlyDriver(options) });
}

const exitEvent = z.object({
  exit_code: z.number().nullish(),
  guest_exit_code: z.number().nullish(),
  oom_killed: z.boolean().nullish(),
  error: z.string().nullish(),
});

/** The members of `GET /v1/apps/{app}/machines/{id}` that the router reads. */
const flyMachineSchema = z.object({
  state: z.string(),
  private_ip: z.string().nullish(),
  events: z
    .array(
      z.object({
        type: z.string().nullish(),
        timestamp: z.number().nullish(),
        request: z.object({ exit_event: exitEvent.nullish() }).nullish(),
      }),
    )
    .nullish(),
});
type FlyMachineView = z.output<typeof flyMachineSchema>;

/** Maps a Fly state to the action it needs; see `RemoteObservation`. */
type FlyCondition = 'up' | 'rising' | 'down' | 'changing' | 'lost';

const CONDITIONS: Readonly<Record<string, FlyCondition>> = {
  started: 'up',
  starting: 'rising',
  restarting: 'rising',
  // A machine whose image is still being prepared is `created`, too; it rejects a start until that is done.
  created: 'down',
  stopped: 'down',
  suspended: 'down',
  // The last start failed; the next may succeed.
  failed: 'down',
  creating: 'changing',
  stopping: 'changing',
  suspending: 'changing',
  updating: 'changing',
  replacing: 'changing',
  destroying: 'lost',
  destroyed: 'lost',
  launch_failed: 'lost',
  replaced: 'lost',
  migrated: 'lost',
};

/** An unknown Fly state is queried again. */
export function conditionOf(state: string): FlyCondition {
  return Object.hasOwn(CONDITIONS, state) ? CONDITIONS[state]! : 'changing';
}

/** How the machine's program last ended, to follow its state; empty if Fly does not report it. */
export function endingOf({ events }: FlyMachineView): string {
  const exits = (events ?? []).filter(({ request }) => request?.exit_event);
  const latest = exits.toSorted((one, other) => (other.timestamp ?? 0) - (one.timestamp ?? 0))[0]?.request?.exit_event;
  if (!latest) return '';
  const { exit_code, guest_exit_code, oom_killed, error } = latest;
  const code = guest_exit_code || exit_code;
  const parts = [
    code === null || code === undefined ? undefined : `its program exited with code ${code}`,
    oom_killed ? 'out of memory' : undefined,
    error || undefined,
  ].filter((part) => part !== undefined);
  return parts.length > 0 ? `; ${parts.join(', ')}` : '';
}
