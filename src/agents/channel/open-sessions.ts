/**
 * Delivery into sessions that a person has open: a folder that the router shares with one channel server
 * (`server.ts`) in each session.
 *
 * - `<client>.open`: the session that the client's process has open, written by its channel server.
 * - `<turn>.offer`: a wake for a session, written by the router.
 * - `<turn>.taken` or `<turn>.withdrawn`: the outcome of the offer. Either side renames the offer, so that exactly one
 *   succeeds: a wake is taken, or the router starts the agent's program, and never both.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { type Clock, wait } from '../../kit/clock/clock.ts';
import { type ClientProcess, isAlive } from '../../kit/process/process-info.ts';
import { systemCodeOf } from '../../wire/errors.ts';

/** The program is started when nothing has taken the wake by then: within 10 seconds of the delivery. */
export const OFFER_MS = 7000;
const LOOK_MS = 100;
/** More clients than this are not looked at. */
const MOST_CLIENTS = 64;

const presenceSchema = z.object({ pid: z.int(), started: z.string(), session: z.string() });
const offerSchema = z.object({ session: z.string(), text: z.string() });
type Offer = z.output<typeof offerSchema>;

type Ending = 'taken' | 'withdrawn';
/** Ids of turns, and nothing that could leave the folder. */
const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function read<T>(file: string, schema: z.ZodType<T>): T | undefined {
  try {
    return schema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    // It has been renamed or removed meanwhile, or is not one of ours.
    return undefined;
  }
}

/** Readers see the whole file or none. */
function write(folder: string, name: string, value: object): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const draft = join(folder, `${name}.draft`);
  writeFileSync(draft, JSON.stringify(value), { mode: 0o600 });
  renameSync(draft, join(folder, name));
}

/** Ends an offer. @returns false when there is none any more */
function end(folder: string, id: string, ending: Ending): boolean {
  try {
    renameSync(join(folder, `${id}.offer`), join(folder, `${id}.${ending}`));
    return true;
  } catch (thrown) {
    if (systemCodeOf(thrown) === 'ENOENT') return false;
    throw thrown;
  }
}

function namesIn(folder: string, suffix: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).filter((name) => name.endsWith(suffix));
}

/** The router's side. */
export class OpenSessions {
  readonly #folder: string;
  readonly #clock: Clock;

  constructor(folder: string, clock: Clock) {
    this.#folder = folder;
    this.#clock = clock;
  }

  /** Whether a running client has the session open, with a channel. */
  has(session: string): boolean {
    return namesIn(this.#folder, '.open')
      .slice(0, MOST_CLIENTS)
      .some((name) => {
        const presence = read(join(this.#folder, name), presenceSchema);
        return presence?.session === session && isAlive(presence);
      });
  }

  /** Whether the wake of a turn was offered before and not taken. */
  wasWithdrawn(turnId: string): boolean {
    return existsSync(join(this.#folder, `${turnId}.withdrawn`));
  }

  /**
   * Offers a wake to the session, and withdraws it when nothing takes it in time or the signal aborts.
   *
   * @returns whether it was taken
   */
  async offer(turnId: string, offer: Offer, signal: AbortSignal): Promise<boolean> {
    const until = this.#clock.now() + OFFER_MS;
    write(this.#folder, `${turnId}.offer`, offer);
    const waits = () => existsSync(join(this.#folder, `${turnId}.offer`));
    while (waits() && !signal.aborted && this.#clock.now() < until && this.has(offer.session))
      await wait(this.#clock, LOOK_MS, signal);
    return !end(this.#folder, turnId, 'withdrawn');
  }

  /**
   * The outcome of the offer of an earlier router, which is withdrawn if it still waits.
   *
   * @returns `undefined` when nothing was offered, or the program was started after it
   */
  settle(turnId: string): Ending | undefined {
    if (end(this.#folder, turnId, 'withdrawn')) return 'withdrawn';
    return existsSync(join(this.#folder, `${turnId}.taken`)) ? 'taken' : undefined;
  }

  /** Removes the files of an ended turn. */
  remove(turnId: string): void {
    for (const ending of ['taken', 'withdrawn']) rmSync(join(this.#folder, `${turnId}.${ending}`), { force: true });
  }
}

/** The side of one open session: its channel server. */
export class SessionChannel {
  readonly #folder: string;
  readonly #client: ClientProcess;
  readonly #announced = new Set<string>();
  #session: string | undefined;

  /** @param client the process that has the session open */
  constructor(folder: string, client: ClientProcess) {
    this.#folder = folder;
    this.#client = client;
  }

  get #name(): string {
    const { pid, started } = this.#client;
    return `${pid}-${started.replaceAll(/[^0-9A-Za-z]/g, '')}.open`;
  }

  /**
   * Publishes the session, and finds the wakes that are offered to it.
   *
   * @param session the open session; `undefined` when unknown
   * @returns the ids of new offers
   */
  look(session: string | undefined): string[] {
    if (session !== this.#session) {
      if (session === undefined) this.close();
      else write(this.#folder, this.#name, { ...this.#client, session });
      this.#session = session;
    }
    if (session === undefined) return [];
    return namesIn(this.#folder, '.offer')
      .map((name) => name.slice(0, -'.offer'.length))
      .filter((id) => ID.test(id) && !this.#announced.has(id))
      .filter((id) => read(join(this.#folder, `${id}.offer`), offerSchema)?.session === session)
      .map((id) => {
        this.#announced.add(id);
        return id;
      });
  }

  /**
   * Takes a wake that was announced here.
   *
   * @returns its text; `undefined` when it was delivered in another way meanwhile
   */
  take(id: string): string | undefined {
    if (!this.#announced.has(id)) return undefined;
    const offer = read(join(this.#folder, `${id}.offer`), offerSchema);
    return offer !== undefined && end(this.#folder, id, 'taken') ? offer.text : undefined;
  }

  /** Withdraws the session. */
  close(): void {
    rmSync(join(this.#folder, this.#name), { force: true });
  }
}
