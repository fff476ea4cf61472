/** One-time messages of a session, and the steps that it can undo. In memory. */
import { randomSecret } from '../kit/identity/secrets.ts';

const MAX_STEPS = 16;

export type FlashMessage = {
  readonly text: string;
  readonly tone: 'good' | 'bad';
  /** The name of the step to undo. */
  readonly undo?: string | undefined;
};

export class SessionMessages {
  readonly #steps = new Map<string, () => Promise<string>>();
  #message: FlashMessage | undefined;

  /** @param step undoes the action and returns a message */
  success(text: string, step?: () => Promise<string>): void {
    const undo = step && randomSecret(9);
    if (undo !== undefined) {
      this.#steps.set(undo, step!);
      const [oldest] = this.#steps.keys();
      if (this.#steps.size > MAX_STEPS) this.#steps.delete(oldest!);
    }
    this.#message = { text, tone: 'good', undo };
  }

  error(text: string): void {
    this.#message = { text, tone: 'bad' };
  }

  /** Returns the message once. */
  take(): FlashMessage | undefined {
    const message = this.#message;
    this.#message = undefined;
    return message;
  }

  /** Returns a step once. */
  step(name: string): (() => Promise<string>) | undefined {
    const step = this.#steps.get(name);
    this.#steps.delete(name);
    return step;
  }
}
