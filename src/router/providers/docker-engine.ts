/** The Docker Engine API, as far as starting and stopping containers needs it. Podman's compatible API works as well. */
import { Agent } from 'undici';
import type { Clock } from '../../kit/clock/clock.ts';
import { guardedConnector } from '../targets/guarded-client.ts';
import { type DockerHost, describeDockerHost } from './docker-host.ts';
import { type ApiAnswer, type ApiCall, ProviderApi } from './provider-api.ts';

const CONNECTIONS = 64;
const TOO_OLD_OR_NEW = /client (api )?version/i;
const API_VERSION = /^\d{1,2}\.\d{1,3}$/;

/** One engine and the connections to it. */
export class DockerEngine {
  readonly host: DockerHost;
  readonly api: ProviderApi;
  readonly #agent: Agent;
  /** Below which its routes stand; not known before it was asked. */
  #prefix: string | undefined;

  constructor(host: DockerHost, clock: Clock) {
    this.host = host;
    const { socketPath, url } =
      host.kind === 'socket'
        ? { socketPath: host.socketPath, url: 'http://docker' }
        : { socketPath: undefined, url: describeDockerHost(host).replace('tcp:', 'http:') };
    this.#agent = new Agent({
      connections: CONNECTIONS,
      pipelining: 1,
      allowH2: false,
      connect: socketPath === undefined ? guardedConnector() : { socketPath },
    });
    const name = `the Docker engine at ${describeDockerHost(host)}`;
    this.api = new ProviderApi({ dispatcher: this.#agent, url, name, headers: {}, clock, secrets: [] });
  }

  /**
   * Makes a call below the version that the engine speaks. Engines refuse versions that are too old as well as too new, and the few
   * members that matter here are the same in all of them, so it is the engine's own.
   *
   * @throws as `ProviderApi.call`
   */
  async call(call: ApiCall): Promise<ApiAnswer> {
    const known = this.#prefix;
    const prefix = known ?? (await this.#askVersion(call.signal));
    this.#prefix = prefix;
    const answer = await this.api.call({ ...call, path: prefix + call.path });
    if (known === undefined || answer.status !== 400 || !TOO_OLD_OR_NEW.test(answer.body.toString('utf8')))
      return answer;
    // Another engine listens there by now.
    this.#prefix = undefined;
    return this.call(call);
  }

  close(): void {
    void this.#agent.destroy();
  }

  async #askVersion(signal: AbortSignal): Promise<string> {
    const { status, headers } = await this.api.call({ method: 'GET', path: '/_ping', signal });
    const version = headers['api-version'];
    return status === 200 && typeof version === 'string' && API_VERSION.test(version) ? `/v${version}` : '';
  }
}
