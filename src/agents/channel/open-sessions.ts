/**
 * Delivery into sessions that the user has open, through a folder that the router shares with the channel server
 * (`server.ts`) of each session.
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

/** How long an offer waits. Then the router starts the agent's program, within 10 seconds of the delivery. */
export const OFFER_MS = 7000;
const LOOK_MS = 100;
/** Maximum number of clients that are read. */
const MOST_CLIENTS = 64;

const presenceSchema = z.object({ pid: z.int(), started: z.string(), session: z.string() });
const offerSchema = z.object({ session: z.string(), text: z.string() });
type Offer = z.output<typeof offerSchema>;

type Ending = 'taken' | 'withdrawn';
/** The id of a turn. It must not be a path out of the folder. */
const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function read<T>(file: string, schema: z.ZodType<T>): T | undefined {
  try {
    return schema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    // The file was renamed or removed meanwhile, or another program wrote it.
    return undefined;
  }
}

/** Writes a file atomically. */
function write(folder: string, name: string, value: object): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const draft = join(folder, `${name}.draft`);
  writeFileSync(draft, JSON.stringify(value), { mode: 0o600 });
  renameSync(draft, join(folder, name));
}

/** Ends an offer. @returns false if it has already ended */
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

  /** Whether the wake of a turn was offered and not taken. */
  wasWithdrawn(turnId: string): boolean {
    return existsSync(join(this.#folder, `${turnId}.withdrawn`));
  }

  /**
   * Offers a wake to the session. It is withdrawn if the session does not take it in time, or the signal aborts.
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
   * The outcome of an offer of an earlier router. An offer that still waits is withdrawn.
   *
   * @returns `undefined` if there was no offer, or the program was started after it
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

/** The channel server's side, for one open session. */
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
   * Publishes the session, and reads the offers to it.
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
   * Takes an offered wake.
   *
   * @returns its text; `undefined` if the offer has already ended
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
