/** Writes an agent's requests: alarms of every kind, with and without optional fields, and edits of them. */
import type { AlarmCreateBody, AlarmPatchBody } from '../../../src/chronos/client.ts';
import { RawJson } from '../../../src/wire/json.ts';
import { formatInstant } from '../../../src/wire/rfc3339.ts';
import type { Dice } from './dice.ts';

const EXPRESSIONS = [
  '* * * * *',
  '*/2 * * * *',
  '1-59/3 * * * *',
  '*/5 1-3 * * *',
  '30 2 * * *',
  '15,45 * * * 0',
  '@hourly',
  '@every 10s',
  '@every 17s',
  '@every 45s',
  '@every 1m30s',
  '@every 4m',
];
const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'America/Los_Angeles',
  'Asia/Kathmandu',
  'Australia/Lord_Howe',
];
/** Digits and an order of keys that parsing would lose. */
const PAYLOADS = ['{"b":12345678901234567890,"a":1.0}', '[1e400, "\\u0000", {} ]', '"ü\\ud83d\\ude00"'];
const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/** Fields of both kinds. */
type Common = Omit<AlarmCreateBody, 'kind'>;

export class AlarmAuthor {
  readonly #owner: string;
  readonly #dice: Dice;
  #written = 0;

  constructor(owner: string, dice: Dice) {
    this.#owner = owner;
    this.#dice = dice;
  }

  /** @param now the client's time, epoch ms */
  once(now: number): AlarmCreateBody {
    const dice = this.#dice;
    const delay = dice.magnitude(1, 300);
    const when = dice.chance(0.7)
      ? { delay_seconds: dice.chance(0.5) ? Math.ceil(delay) : Math.round(delay * 1e3) / 1e3 }
      : { fire_at: formatInstant(now + Math.round(delay * SECOND)) };
    return { kind: 'once', ...when, ...this.#common() };
  }

  series(now: number): AlarmCreateBody {
    const dice = this.#dice;
    return {
      kind: 'cron',
      cron_expr: dice.pick(EXPRESSIONS),
      ...(dice.chance(0.6) ? { timezone: dice.pick(ZONES) } : {}),
      ...(dice.chance(0.3) ? { max_fires: dice.whole(1, 8) } : {}),
      ...(dice.chance(0.15) ? { ends_at: formatInstant(now + Math.round(dice.magnitude(1, 20) * MINUTE)) } : {}),
      ...this.#common(),
    };
  }

  /** Several alarms that are due at the same time. */
  flock(now: number): AlarmCreateBody[] {
    const fireAt = formatInstant(now + Math.round(this.#dice.magnitude(2, 100) * SECOND));
    return Array.from({ length: this.#dice.chance(0.1) ? 40 : this.#dice.whole(3, 9) }, () => ({
      kind: 'once' as const,
      ...this.#common(),
      fire_at: fireAt,
    }));
  }

  edit(kind: 'once' | 'cron', now: number): AlarmPatchBody {
    const dice = this.#dice;
    const patch: AlarmPatchBody = {};
    if (dice.chance(0.4)) patch.wake_message = this.#message();
    if (dice.chance(0.2)) patch.jitter_seconds = dice.chance(0.3) ? null : dice.pick([0, 1, 20]);
    if (dice.chance(0.1)) patch.max_failures = dice.chance(0.3) ? null : dice.whole(1, 5);
    if (dice.chance(0.1)) patch.max_lateness_seconds = dice.chance(0.5) ? null : dice.magnitude(0.5, 60);
    if (dice.chance(0.1)) patch.payload = this.#payload();
    if (dice.chance(0.1)) patch.conversation_id = dice.chance(0.5) ? null : `talk-${dice.whole(0, 9)}`;
    if (kind === 'once') {
      if (dice.chance(0.3)) patch.delay_seconds = Math.round(dice.magnitude(1, 200) * 10) / 10;
      else if (dice.chance(0.2)) patch.fire_at = formatInstant(now + Math.round(dice.magnitude(1, 200) * SECOND));
    } else {
      if (dice.chance(0.3)) patch.cron_expr = dice.pick(EXPRESSIONS);
      if (dice.chance(0.1)) patch.timezone = dice.chance(0.3) ? null : dice.pick(ZONES);
      if (dice.chance(0.15)) patch.max_fires = dice.chance(0.4) ? null : dice.whole(1, 8);
      if (dice.chance(0.1)) patch.ends_at = dice.chance(0.4) ? null : formatInstant(now + dice.whole(1, 20) * MINUTE);
    }
    return Object.keys(patch).length > 0 ? patch : { label: `${this.#owner} edited ${this.#written++}` };
  }

  #common(): Common {
    const dice = this.#dice;
    return {
      wake_message: this.#message(),
      ...(dice.chance(0.8) ? { idempotency_key: `key ${this.#written}` } : {}),
      ...(dice.chance(0.4) ? { conversation_id: `talk-${dice.whole(0, 9)}` } : {}),
      ...(dice.chance(0.2) ? { payload: this.#payload() } : {}),
      ...(dice.chance(0.2) ? { jitter_seconds: dice.pick([0.25, 3, 40]) } : {}),
      ...(dice.chance(0.15) ? { max_lateness_seconds: dice.magnitude(0.02, 60) } : {}),
      ...(dice.chance(0.3) ? { max_failures: dice.whole(1, 5) } : {}),
    };
  }

  /** Made unique by white space, which is part of the source text. */
  #payload(): RawJson {
    return new RawJson(`[ ${this.#dice.pick(PAYLOADS)} ,${this.#written++} , "${this.#owner}"]`);
  }

  #message(): string {
    return `alarm ${this.#written++} of ${this.#owner} \u0007 “ü”  `;
  }
}
