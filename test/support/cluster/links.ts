/** The links of the cluster between its programs, each through a proxy that can simulate faults. */
import { type LinkMode, PASS } from '../proxy/link-mode.ts';
import { TcpProxy } from '../proxy/tcp-proxy.ts';

/** client → chronosd, chronosd → router, router → the agents' daemons, chronosd → PostgreSQL. */
export const LINK_NAMES = ['api', 'wake', 'delivery', 'database'] as const;
export type LinkName = (typeof LINK_NAMES)[number];

export class Links {
  readonly #enabled: boolean;
  readonly #proxies = new Map<LinkName, TcpProxy[]>();

  /** @param enabled without it, every link is a direct connection */
  constructor(enabled: boolean) {
    this.#enabled = enabled;
  }

  /** The names of the links. */
  get names(): LinkName[] {
    return [...this.#proxies.keys()];
  }

  /** The port of the link to this port. */
  async lead(name: LinkName, port: number): Promise<number> {
    if (!this.#enabled) return port;
    const proxy = await TcpProxy.open(port);
    this.#proxies.set(name, [...(this.#proxies.get(name) ?? []), proxy]);
    return proxy.port;
  }

  set(name: LinkName, mode: LinkMode): void {
    for (const proxy of this.#proxies.get(name) ?? []) proxy.set(mode);
  }

  /** Repairs all links. */
  heal(): void {
    for (const name of this.names) this.set(name, PASS);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#proxies.values()].flat().map((proxy) => proxy.close()));
  }
}
