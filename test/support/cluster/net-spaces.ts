/**
 * Machines of a cluster in separate network namespaces, on two private networks of this machine: one for the cluster,
 * one for its clients. Each machine can be disconnected from either. Needs root.
 */
import { execFileSync, spawnSync } from 'node:child_process';

/** Addresses that are reserved for tests (RFC 2544). */
const NETS = { cluster: '198.18', clients: '198.19' } as const;
const LETTERS = { cluster: 'c', clients: 'u' } as const;
export type Net = keyof typeof NETS;

const ip = (...args: string[]) => execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] });
const quietly = (...args: string[]) => spawnSync('ip', args, { stdio: 'ignore' });

/** Why namespaces are not available here, and the remedy; or nothing. */
export function noNetSpaces(): string | undefined {
  if (process.getuid?.() !== 0) return 'network namespaces need root';
  const name = `rv${process.pid}`;
  if (spawnSync('ip', ['link', 'add', name, 'type', 'bridge']).status !== 0)
    return 'a network bridge cannot be made here (iproute2 is missing, or the container lacks the right)';
  quietly('link', 'del', name);
  return undefined;
}

export class NetSpaces {
  readonly #id: number;
  readonly #count: number;

  constructor(count: number) {
    this.#count = count;
    this.#id = process.pid % 250;
    try {
      for (const net of ['cluster', 'clients'] as const) {
        ip('link', 'add', this.#bridge(net), 'type', 'bridge');
        ip('addr', 'add', `${this.gateway(net)}/24`, 'dev', this.#bridge(net));
        ip('link', 'set', this.#bridge(net), 'up');
      }
      for (let n = 0; n < count; n++) this.#add(n);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  #add(n: number): void {
    ip('netns', 'add', this.name(n));
    ip('-n', this.name(n), 'link', 'set', 'lo', 'up');
    for (const net of ['cluster', 'clients'] as const) {
      const [inside, outside] = [`${net}0`, this.#cable(n, net)];
      ip('link', 'add', outside, 'type', 'veth', 'peer', 'name', inside, 'netns', this.name(n));
      ip('link', 'set', outside, 'master', this.#bridge(net), 'up');
      ip('-n', this.name(n), 'addr', 'add', `${this.address(n, net)}/24`, 'dev', inside);
      ip('-n', this.name(n), 'link', 'set', inside, 'up');
    }
  }

  /** Of the namespace. */
  name(n: number): string {
    return `rv-${process.pid}-${n}`;
  }

  address(n: number, net: Net): string {
    return `${NETS[net]}.${this.#id}.${11 + n}`;
  }

  /** This machine's own address there. */
  gateway(net: Net): string {
    return `${NETS[net]}.${this.#id}.1`;
  }

  /** Disconnects the cables of a machine, or connects them. */
  plug(n: number, nets: readonly Net[], isIn: boolean): void {
    for (const net of nets) ip('link', 'set', this.#cable(n, net), isIn ? 'up' : 'down');
  }

  /** Every process in a namespace must have ended. */
  close(): void {
    for (let n = 0; n < this.#count; n++) quietly('netns', 'del', this.name(n));
    for (const net of ['cluster', 'clients'] as const) quietly('link', 'del', this.#bridge(net));
  }

  /** Names of interfaces have 15 characters at most. */
  #bridge(net: Net): string {
    return `rv${process.pid}${LETTERS[net]}`;
  }

  #cable(n: number, net: Net): string {
    return `rv${process.pid}${LETTERS[net]}${n}`;
  }
}
