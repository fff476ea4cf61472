/** What a session says once on its next page, and what was done that it can take back. In memory; a few at a time. */
import { randomSecret } from '../kit/identity/secrets.ts';

const MOST = 16;

export type FlashMessage = {
  readonly text: string;
  readonly tone: 'good' | 'bad';
  /** Names what can be taken back. */
  readonly undo?: string | undefined;
};

export class SessionMessages {
  readonly #steps = new Map<string, () => Promise<string>>();
  #message: FlashMessage | undefined;

  /** @param step takes it back, and says what it did */
  success(text: string, step?: () => Promise<string>): void {
    const undo = step && randomSecret(9);
    if (undo !== undefined) {
      this.#steps.set(undo, step!);
      const [oldest] = this.#steps.keys();
      if (this.#steps.size > MOST) this.#steps.delete(oldest!);
    }
    this.#message = { text, tone: 'good', undo };
  }

  error(text: string): void {
    this.#message = { text, tone: 'bad' };
  }

  /** What has to be said, once. */
  take(): FlashMessage | undefined {
    const message = this.#message;
    this.#message = undefined;
    return message;
  }

  /** What takes the named thing back, once. */
  step(name: string): (() => Promise<string>) | undefined {
    const step = this.#steps.get(name);
    this.#steps.delete(name);
    return step;
  }
}
