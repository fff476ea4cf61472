/** All events, line by line, and a running hash over them: two runs of one seed must have the same hash. */

/** FNV-1a, 32 bits, over two states with different initial values. */
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

  /** Records one event: who, what, and details. */
  note(who: string, what: string, more = ''): void {
    const line = `${this.#now().toFixed(3).padStart(12)} ${who} ${what}${more && ` ${more}`}`;
    for (let index = 0; index < line.length; index++) {
      const code = line.charCodeAt(index);
      this.#one = Math.imul(this.#one ^ code, PRIME);
      this.#other = Math.imul(this.#other ^ code, PRIME) ^ (this.#other >>> 17);
    }
    this.#onLine?.(line);
  }

  /** A remark for the reader of the trace, not part of the hash. */
  aside(text: string): void {
    this.#onLine?.(text);
  }

  /** 16 hex digits: the hash of all events so far. */
  get digest(): string {
    return [this.#one, this.#other].map((state) => (state >>> 0).toString(16).padStart(8, '0')).join('');
  }
}
