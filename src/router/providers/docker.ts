/** Provider `docker`: an existing container, on an engine that this machine reaches. */
import type { Dispatcher } from 'undici';
import { z } from 'zod';
import type { Clock } from '../../kit/clock/clock.ts';
import {
  argument,
  type Descriptor,
  healthPath,
  healthPathFact,
  healthPathFlag,
  port,
  portFact,
  portFlag,
} from './descriptor.ts';
import {
  addressOf,
  type Container,
  containerSchema,
  type DockerHost,
  describeDockerHost,
  endingOf,
  logText,
  parseDockerHost,
  secretsIn,
} from './docker-container.ts';
import type { Provider, ProviderMachine } from './provider.ts';
import {
  type ApiAnswer,
  type ApiCall,
  loadAgents,
  type OpenAgent,
  ProviderApi,
  TransientProviderError,
} from './provider-api.ts';
import { plain, shownPath } from './redaction.ts';
import { RemoteProvider, type RemoteProviderOptions } from './remote.ts';
import type { Action, RemoteDriver, RemoteObservation } from './remote-driver.ts';

const SLEEPS = ['stop', 'pause'] as const;

const dockerSpecSchema = z.strictObject({
  /** Its name or id. */
  container: z
    .string()
    .regex(/^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}$/, 'must be the name or id of a container: letters, digits, _ . -'),
  /** Where the daemon listens inside the container. */
  port,
  /** The engine's Unix socket; by default that of `DOCKER_HOST`. */
  socket: argument.startsWith('/').optional(),
  /** How it is put to sleep; by default `stop`. */
  sleep: z.enum(SLEEPS).optional(),
  health_path: healthPath,
});
export type DockerSpec = z.output<typeof dockerSpecSchema>;

export const DOCKER: Descriptor<'docker', typeof dockerSpecSchema> = {
  name: 'docker',
  about: 'a machine to start',
  schema: dockerSpecSchema,
  shown: { container: plain, port: plain, socket: plain, sleep: plain, health_path: shownPath },
  identity: ['socket', 'container'],
  flags: [
    {
      usage: '--container <name>',
      about: 'the container',
      member: 'container',
      kind: 'text',
      needed: 'the name or id of the container',
    },
    { usage: '--socket <path>', about: "the engine's socket (default: DOCKER_HOST)", member: 'socket', kind: 'text' },
    { ...portFlag, needed: 'the port on which the daemon listens in the container' },
    {
      usage: '--sleep <how>',
      about: 'stop or pause (default: stop)',
      member: 'sleep',
      kind: { choice: SLEEPS },
    },
    healthPathFlag,
  ],
  facts: (spec) => [['where', `container ${spec.container}`], portFact(spec), healthPathFact(spec)],
  async create({ awake, config, probe, clock, log }) {
    const openAgent = await loadAgents();
    const { dockerHost } = config;
    return createDockerProvider({ awake: awake('docker'), probe, clock, log, openAgent, dockerHost });
  },
};

/** The engine sends SIGKILL this long after SIGTERM, in seconds. */
const GRACE_SECONDS = 10;
const LOG_LINES = 6;

type DockerTarget = ProviderMachine<DockerSpec>;

class DockerDriver implements RemoteDriver<DockerSpec> {
  // A query takes a few milliseconds; a paused container accepts connections and does not answer.
  readonly trustMs = 1000;
  readonly firstPauseMs = 50;
  readonly longestPauseMs = 1000;
  readonly staleMs = 0;
  readonly #dockerHost: string | undefined;
  readonly #clock: Clock;
  readonly #openAgent: OpenAgent;
  readonly #engines = new Map<string, DockerEngine>();

  constructor(dockerHost: string | undefined, clock: Clock, openAgent: OpenAgent) {
    this.#dockerHost = dockerHost;
    this.#clock = clock;
    this.#openAgent = openAgent;
  }

  async observe(target: DockerTarget, signal: AbortSignal): Promise<RemoteObservation> {
    const { container, port, sleep = 'stop' } = target.spec;
    const { api, host } = this.#engineOf(target);
    const answer = await this.#request(target, 'GET', '/json', signal);
    if (answer.status === 404)
      return { state: 'lost', text: `${api.name} has no such container; ${api.textOf(answer)}` };
    if (answer.status >= 500) throw api.transient(answer);
    if (answer.status !== 200) throw api.refusal(`the state of the container "${container}" cannot be read`, answer);
    const parsed = containerSchema.safeParse(api.jsonOf(answer));
    if (!parsed.success)
      throw new TransientProviderError(`${api.name} answered with something that is not a container`);
    const { State } = parsed.data;
    const named = `the container "${container}"`;
    const end = this.#action(target, 'stop');
    switch (State.Status) {
      case 'running': {
        const url = addressOf(parsed.data, port, host);
        // The engine's own health check is quoted, not awaited: it may run only twice a minute.
        const health = State.Health?.Status ?? 'none';
        const healthText = health === 'none' ? '' : ` (its health check says ${api.scrub(health)})`;
        const text = url === undefined ? notReachable(named, port) : `${named} runs${healthText}`;
        return { state: 'up', text, url, sleep: this.#action(target, sleep), end };
      }
      case 'paused':
        return { state: 'down', text: `${named} is paused`, start: this.#action(target, 'unpause') };
      case 'created':
      case 'exited': {
        const error = api.scrub(State.Error ?? '', this.#secretsOf(target, parsed.data));
        const text =
          State.Status === 'created' ? `${named} was never started` : `${named} ${endingOf(parsed.data, error)}`;
        return { state: 'down', text, start: this.#action(target, 'start') };
      }
      case 'restarting':
        return { state: 'rising', text: `${named} is restarting; it ${endingOf(parsed.data, '')}`, end };
      case 'removing':
      case 'dead':
        return { state: 'lost', text: `${named} is ${State.Status}` };
      default:
        return { state: 'changing', text: `${named} is ${api.scrub(State.Status)}` };
    }
  }

  async lastOutput(target: DockerTarget, signal: AbortSignal): Promise<string> {
    const { api } = this.#engineOf(target);
    try {
      const about = containerSchema.parse(api.jsonOf(await this.#request(target, 'GET', '/json', signal)));
      const log = await this.#request(target, 'GET', `/logs?stdout=1&stderr=1&tail=${LOG_LINES}`, signal);
      if (log.status !== 200) return '';
      return api.scrub(logText(log.body, about.Config?.Tty ?? false), this.#secretsOf(target, about));
    } catch {
      signal.throwIfAborted();
      // Some log drivers cannot be read; then only the exit code is reported.
      return '';
    }
  }

  close(): void {
    for (const engine of this.#engines.values()) engine.close();
  }

  #engineOf({ spec }: DockerTarget): DockerEngine {
    const where = spec.socket === undefined ? this.#dockerHost : `unix://${spec.socket}`;
    let engine = this.#engines.get(where ?? '');
    if (!engine) {
      engine = new DockerEngine(parseDockerHost(where), this.#clock, this.#openAgent);
      this.#engines.set(where ?? '', engine);
    }
    return engine;
  }

  #secretsOf({ token }: DockerTarget, container: Container): string[] {
    return [token, ...secretsIn(container)];
  }

  #request(
    target: DockerTarget,
    method: 'GET' | 'POST',
    path: string,
    signal: AbortSignal,
    limitMs?: number,
  ): Promise<ApiAnswer> {
    const call = { method, path: `/containers/${target.spec.container}${path}`, signal };
    return this.#engineOf(target).call(limitMs === undefined ? call : { ...call, limitMs });
  }

  #action(target: DockerTarget, action: 'start' | 'unpause' | 'pause' | 'stop'): Action {
    return async (signal) => {
      const path = action === 'stop' ? `/stop?t=${GRACE_SECONDS}` : `/${action}`;
      // The engine answers a stop when the container has ended, and a start when it runs.
      const answer = await this.#request(target, 'POST', path, signal, (GRACE_SECONDS + 10) * 1000);
      const { status } = answer;
      // 304: the state is reached already. 404: the next query reports it.
      if (status === 204 || status === 200 || status === 304 || status === 404) return;
      const { api } = this.#engineOf(target);
      // Another client has just changed its state.
      if (status === 409) throw api.transient(answer, { patient: true, secrets: [target.token] });
      if (status === 429 || status === 503) throw api.transient(answer);
      throw api.refusal(`the container "${target.spec.container}" did not ${action}`, answer, [target.token]);
    };
  }
}

function notReachable(named: string, port: number): string {
  return `${named} runs, but its port ${port} is neither published nor on a network of this machine; publish it with: docker run -p 127.0.0.1::${port}`;
}

type DockerProviderOptions = Omit<RemoteProviderOptions<DockerSpec>, 'name' | 'driver'> & {
  /** In the form of `DOCKER_HOST`. An invalid value is an error only when a machine needs it. */
  dockerHost: string | undefined;
  openAgent: OpenAgent;
};

export function createDockerProvider({ dockerHost, openAgent, ...options }: DockerProviderOptions): Provider {
  return new RemoteProvider<DockerSpec>({
    ...options,
    name: 'docker',
    driver: new DockerDriver(dockerHost, options.clock, openAgent),
  });
}

const TOO_OLD_OR_NEW = /client (api )?version/i;
const API_VERSION = /^\d{1,2}\.\d{1,3}$/;

class DockerEngine {
  readonly host: DockerHost;
  readonly api: ProviderApi;
  readonly #agent: Dispatcher;
  /** The prefix of its routes; unknown before the first query. */
  #prefix: string | undefined;

  constructor(host: DockerHost, clock: Clock, openAgent: OpenAgent) {
    this.host = host;
    const { socketPath, url } =
      host.kind === 'socket'
        ? { socketPath: host.socketPath, url: 'http://docker' }
        : { socketPath: undefined, url: describeDockerHost(host).replace('tcp:', 'http:') };
    this.#agent = openAgent(socketPath);
    const name = `the Docker engine at ${describeDockerHost(host)}`;
    this.api = new ProviderApi({ dispatcher: this.#agent, url, name, headers: {}, clock, secrets: [] });
  }

  /**
   * Makes a call with the API version of the engine. Engines reject versions that are too old or too new. The few
   * members that the router reads are the same in all versions.
   *
   * @throws as `ProviderApi.call`
   */
  async call(call: ApiCall): Promise<ApiAnswer> {
    const known = this.#prefix;
    const prefix = known ?? (await this.#readVersion(call.signal));
    this.#prefix = prefix;
    const answer = await this.api.call({ ...call, path: prefix + call.path });
    if (known === undefined || answer.status !== 400 || !TOO_OLD_OR_NEW.test(answer.body.toString('utf8')))
      return answer;
    // Another engine listens there now.
    this.#prefix = undefined;
    return this.call(call);
  }

  close(): void {
    void this.#agent.destroy();
  }

  async #readVersion(signal: AbortSignal): Promise<string> {
    const { status, headers } = await this.api.call({ method: 'GET', path: '/_ping', signal });
    const version = headers['api-version'];
    return status === 200 && typeof version === 'string' && API_VERSION.test(version) ? `/v${version}` : '';
  }
}
