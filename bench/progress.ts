/** Progress for the operator: one updated line on a terminal, one line per step elsewhere. */

function seconds(milliseconds: number): string {
  const whole = Math.max(0, Math.round(milliseconds / 1000));
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

export class Progress {
  readonly #out: NodeJS.WriteStream;
  readonly #startedAt = Date.now();
  #label = '';
  #endsAt: number | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
  }

  /** A new step starts, or, with the same label, its expected end is known. */
  step(label: string, endsAt?: number): void {
    const isNew = label !== this.#label;
    this.#label = label;
    this.#endsAt = endsAt;
    if (!this.#out.isTTY) {
      if (isNew) this.#out.write(`${this.#elapsed().padStart(12)}  ${label}\n`);
      return;
    }
    this.#draw();
    this.#timer ??= setInterval(() => this.#draw(), 1000).unref();
  }

  /** Progress of the current step. Shown on terminals only. */
  detail(text: string): void {
    if (!this.#out.isTTY) return;
    this.#draw(text);
  }

  /** Clears the line for permanent output. */
  clear(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (this.#out.isTTY) this.#out.write('\r\x1b[K');
  }

  #elapsed(): string {
    return seconds(Date.now() - this.#startedAt);
  }

  #draw(detail?: string): void {
    const left = this.#endsAt === undefined ? '' : `, ${seconds(this.#endsAt - Date.now())} left`;
    const text = `${this.#elapsed()}  ${this.#label}${detail === undefined ? left : `, ${detail}`}`;
    this.#out.write(`\r\x1b[K${text.slice(0, (this.#out.columns || 80) - 1)}`);
  }
}
