/** What happened, line by line, and a running hash over it: two runs of one seed must agree in it. */

/** FNV-1a, 32 bits, over two differently started lanes. */
const PRIME = 0x01000193;

export class Trace {
  readonly #now: () => number;
  readonly #onLine: ((line: string) => void) | undefined;
  #one = 0x811c9dc5;
  #other = 0x2f0b4a27;

  /** @param onLine gets each line; without it the lines are only hashed */
  constructor(now: () => number, onLine?: (line: string) => void) {
    this.#now = now;
    this.#onLine = onLine;
  }

  /** Writes down one event: who, what, and what else there is to say. */
  note(who: string, what: string, more = ''): void {
    const line = `${this.#now().toFixed(3).padStart(12)} ${who} ${what}${more && ` ${more}`}`;
    for (let index = 0; index < line.length; index++) {
      const code = line.charCodeAt(index);
      this.#one = Math.imul(this.#one ^ code, PRIME);
      this.#other = Math.imul(this.#other ^ code, PRIME) ^ (this.#other >>> 17);
    }
    this.#onLine?.(line);
  }

  /** Something for whoever reads along that is no part of what happened. */
  aside(text: string): void {
    this.#onLine?.(text);
  }

  /** 16 hex digits that stand for everything noted so far. */
  get digest(): string {
    return [this.#one, this.#other].map((lane) => (lane >>> 0).toString(16).padStart(8, '0')).join('');
  }
}
