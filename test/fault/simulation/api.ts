/** One client's connection to chronosd: its routes over a network that delays and loses messages. */
import { openEnvelope } from '../../../src/wire/envelope.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import type { Dice } from './dice.ts';
import type { ApiAnswer } from './replica.ts';
import type { World } from './world.ts';

/** A client's timeout for an answer. */
const PATIENCE_MS = 20_000;

export class Api {
  readonly #world: World;
  readonly #dice: Dice;
  readonly #principal: string;

  /** @param principal the token that names the user of the requests */
  constructor(world: World, dice: Dice, principal: string) {
    this.#world = world;
    this.#dice = dice;
    this.#principal = principal;
  }

  /**
   * One request to any replica.
   *
   * @returns the text of `data`
   * @throws ReveilleError chronosd's own, or `unavailable` without an answer
   */
  async request(method: string, path: string, body?: string): Promise<string> {
    const answer = await this.#exchange(method, path, body);
    if (!answer) throw new ReveilleError('unavailable', 'chronosd did not answer');
    return openEnvelope(answer.text, answer.status, 'chronosd').text;
  }

  /** The same, repeated until there is an answer. */
  async requestUntilAnswered(method: string, path: string): Promise<string> {
    for (;;) {
      try {
        return await this.request(method, path);
      } catch (error) {
        if (!leavesOpen(error)) throw error;
        await this.#world.pause(500);
      }
    }
  }

  #exchange(method: string, path: string, body?: string): Promise<ApiAnswer | undefined> {
    const { replicas, timeline, weather } = this.#world;
    const replica = this.#dice.pick(replicas.filter(({ plan }) => plan.api));
    return new Promise((resolve) => {
      const giveUp = timeline.after(PATIENCE_MS, () => resolve(undefined));
      const settle = (answer: ApiAnswer | undefined) => {
        giveUp();
        resolve(answer);
      };
      if (weather.losesRequest()) return;
      timeline.after(weather.tripMs(), () =>
        replica.request({ method, path, principal: this.#principal, body }, (answer) => {
          if (answer && weather.losesRequest()) return;
          timeline.after(weather.tripMs(), () => settle(answer));
        }),
      );
    });
  }
}

/** Whether the outcome of the request is unknown after an error. */
export function leavesOpen(error: unknown): boolean {
  return error instanceof ReveilleError && (error.code === 'unavailable' || error.code === 'internal');
}
