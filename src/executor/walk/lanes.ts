/**
 * Who goes when: of one user's intents one is walked at a time, in the order of their acceptance, and one is compiled
 * at a time, so that a plan is there when its turn comes. Users do not wait for one another, but for models.
 */
import type { Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { Journal } from '../journal/journal.ts';
import { isOver } from '../receipt/chain-state.ts';
import { type Course, Halted } from './course.ts';

/** Tasks that are compiled at the same time, of all users together. */
const COMPILATIONS = 4;
/** After a failure that nobody expected. */
const AGAIN_MS = 5000;

type LaneWork = {
  courseOf(intentId: string): Course;
  draft(course: Course): Promise<void>;
  walk(course: Course): Promise<void>;
};

type Lane = { readonly ids: string[]; drafting: boolean; walking: boolean };
type Activity = { readonly course: Course; readonly done: Promise<void> };

export class Lanes {
  readonly #work: LaneWork;
  readonly #parts: { readonly journal: Journal; readonly clock: Clock; readonly log: Logger };
  readonly #lanes = new Map<string, Lane>();
  readonly #activities = new Map<string, Activity>();
  readonly #held = new Set<string>();
  readonly #unsubscribe: () => void;
  #compiling = 0;
  #closed = false;

  constructor(work: LaneWork, parts: { readonly journal: Journal; readonly clock: Clock; readonly log: Logger }) {
    this.#work = work;
    this.#parts = parts;
    this.#unsubscribe = parts.journal.onChange((intentId, _, state) => {
      if (isOver(state)) this.#leave(state.accepted.principal.user, intentId);
    });
  }

  /** Puts an intent into its owner's queue, by the order of acceptance. */
  add(user: string, intentId: string): void {
    const lane = this.#lanes.get(user) ?? { ids: [], drafting: false, walking: false };
    this.#lanes.set(user, lane);
    const { journal } = this.#parts;
    const { row, state } = journal.held(intentId);
    // Looking at it may have ended it: its chain may have been changed.
    if (!isOver(state) && !lane.ids.includes(intentId)) {
      const { seq } = row;
      const later = lane.ids.findIndex((id) => journal.held(id).row.seq > seq);
      lane.ids.splice(later < 0 ? lane.ids.length : later, 0, intentId);
    }
    this.#pump(user);
  }

  /** The intent that has to come to its end right before this one. */
  before(user: string, intentId: string): string | undefined {
    const ids = this.#lanes.get(user)?.ids ?? [];
    const place = ids.indexOf(intentId);
    return place > 0 ? ids[place - 1] : undefined;
  }

  /** Keeps an intent from going on; what it has begun is still brought to its end. */
  hold(intentId: string): void {
    this.#held.add(intentId);
    this.#activities.get(intentId)?.course.halt();
  }

  /** Resolves when nothing of it is under way. */
  async idle(intentId: string): Promise<void> {
    for (let activity = this.#activities.get(intentId); activity; activity = this.#activities.get(intentId)) {
      await activity.done;
    }
  }

  /** Lets an intent that was held go on, where it is not over. */
  release(user: string, intentId: string): void {
    this.#held.delete(intentId);
    this.#pump(user);
  }

  /** Begins nothing more. Resolves when all that is under way has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#unsubscribe();
    for (const { course } of this.#activities.values()) course.halt();
    await Promise.all([...this.#activities.values()].map(({ done }) => done));
  }

  #leave(user: string, intentId: string): void {
    const lane = this.#lanes.get(user);
    const place = lane?.ids.indexOf(intentId) ?? -1;
    if (place < 0) return;
    lane!.ids.splice(place, 1);
    if (lane!.ids.length === 0 && !lane!.walking && !lane!.drafting) this.#lanes.delete(user);
    // Whoever told of the end is not done with it yet.
    queueMicrotask(() => this.#pump(user));
  }

  #pump(user: string): void {
    const lane = this.#lanes.get(user);
    if (!lane || this.#closed) return;
    if (!lane.drafting) this.#draftNext(user, lane);
    if (!lane.walking) this.#walkNext(user, lane);
  }

  #draftNext(user: string, lane: Lane): void {
    const intentId = lane.ids.find((id) => this.#isFree(id) && !this.#stateOf(id).compiled);
    if (intentId === undefined || isOver(this.#stateOf(intentId))) return;
    const asksModel = this.#stateOf(intentId).accepted.prose !== undefined;
    if (asksModel && this.#compiling >= COMPILATIONS) return;
    lane.drafting = true;
    if (asksModel) this.#compiling++;
    this.#run(user, intentId, this.#work.draft, () => {
      lane.drafting = false;
      if (!asksModel) return;
      this.#compiling--;
      // There is room for somebody else's.
      for (const other of [...this.#lanes.keys()]) if (other !== user) this.#pump(other);
    });
  }

  #walkNext(user: string, lane: Lane): void {
    const intentId = lane.ids[0];
    if (intentId === undefined || !this.#isFree(intentId)) return;
    const state = this.#stateOf(intentId);
    if (!state.compiled || isOver(state)) return;
    lane.walking = true;
    this.#run(user, intentId, this.#work.walk, () => {
      lane.walking = false;
    });
  }

  #isFree(intentId: string): boolean {
    return !this.#held.has(intentId) && !this.#activities.has(intentId);
  }

  #stateOf(intentId: string) {
    return this.#parts.journal.held(intentId).state;
  }

  #run(user: string, intentId: string, work: (course: Course) => Promise<void>, ended: () => void): void {
    const { clock, log } = this.#parts;
    const course = this.#work.courseOf(intentId);
    const run = async () => {
      // Whoever puts an intent into the queue is not kept waiting.
      await Promise.resolve();
      let again = 0;
      try {
        await work(course);
      } catch (thrown) {
        if (!(thrown instanceof Halted)) {
          again = AGAIN_MS;
          log.error(
            { err: thrown, intent: intentId },
            'an intent failed in a way that nobody expected; it is taken up again',
          );
        }
      }
      this.#activities.delete(intentId);
      ended();
      if (again === 0) this.#pump(user);
      else clock.after(again, () => this.#pump(user));
    };
    this.#activities.set(intentId, { course, done: run() });
  }
}
