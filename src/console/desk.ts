/**
 * What the console asks of the house, for one person: the clients of the systems, each with the person's own right and
 * no other, and what only the installation around it knows. A part that is not there says why, in a sentence with what
 * to do; its screens show that sentence.
 */
import type { ChronosClient } from '../chronos/client.ts';
import type { ExecutorClient } from '../executor/client.ts';
import type { NeoClient } from '../neo/client.ts';
import type { RouterClient } from '../router/client.ts';
import type { ApproverView } from '../wire/approver.ts';
import type { DayView } from '../wire/chronometric-view.ts';
import type { GateAnswer } from '../wire/executor.ts';
import type { PasskeyRequest } from '../wire/passkey.ts';

/** A part of the house, or why it is not there. */
export type Part<T> = { readonly there: T } | { readonly missing: string };

/** The key with which the person's answers are signed on this side. */
export type ApproverPort = {
  /** Whose key it is, and whether a passphrase has to open it. */
  known(): { readonly publicKey: string; readonly name: string; readonly isSealed: boolean } | undefined;
  /**
   * Signs an answer. @throws ReveilleError `forbidden` for a wrong passphrase, `not_found` without a key, `unavailable`
   * where the system's store does not give it out
   */
  sign(
    answer: Pick<GateAnswer, 'approved' | 'answer' | 'call_sha256' | 'displayed_sha256'>,
    about: { intentId: string; nodeId: string },
    passphrase: string | undefined,
  ): Promise<GateAnswer>;
};

/** The roster of the person's approvers, as far as passkeys of theirs go, and the key that vouches for them. */
export type PasskeyPort = {
  /** Whether the key opens. @throws ReveilleError as `ApproverPort.sign` */
  opens(passphrase: string | undefined): Promise<void>;
  /** Revoked ones, too. */
  list(): Promise<readonly ApproverView[]>;
  /**
   * Lets a passkey in. @throws ReveilleError as `ApproverPort.sign`, and what the executor says
   */
  enroll(request: Pick<PasskeyRequest, 'passkey' | 'name'>, passphrase: string | undefined): Promise<ApproverView>;
  /** @param approver the id of the passkey */
  revoke(approver: string, passphrase: string | undefined): Promise<ApproverView>;
};

export type Check = {
  readonly name: string;
  readonly status: 'ok' | 'note' | 'warning' | 'broken';
  readonly detail: string;
  readonly remedy?: string;
};

/** Where something lies or listens. */
export type ConsoleLocation = { readonly name: string; readonly where: string };

/** What a receipt says when it is checked as `reveille receipt verify` does. */
export type ReceiptVerdict = { readonly isWhole: boolean; readonly lines: readonly string[] };

/** Somewhere the person is told of something; no secret. */
export type NoticeChannel = {
  readonly id: string;
  readonly name: string;
  readonly place: string;
  readonly told: readonly string[];
  readonly quiet?: { readonly from: string; readonly to: string; readonly timezone: string } | undefined;
  /** Epoch ms. */
  readonly lastToldAt: number | undefined;
  readonly lastError: string | undefined;
  readonly isPaused: boolean;
};

/** Where the person is told of what. */
export type Notices = {
  /** What one can be told of, and what one is told of unless one says otherwise. */
  readonly kinds: readonly string[];
  readonly standard: readonly string[];
  /** The `applicationServerKey` that a browser subscribes with, in base64url. */
  pushKey(): string;
  list(): readonly NoticeChannel[];
  /**
   * Adds a browser by its push subscription. @throws ReveilleError `invalid_request` naming what is wrong, `conflict`
   * for a name that is taken
   */
  add(
    subscription: { readonly endpoint: unknown; readonly keys: unknown },
    wish: {
      readonly name: string | undefined;
      readonly told: readonly string[];
      readonly quiet: { readonly from: string; readonly to: string; readonly timezone: string } | undefined;
    },
  ): NoticeChannel;
  /** @throws ReveilleError `not_found` */
  remove(id: string): NoticeChannel;
  /** Tells it something now. @returns why it did not arrive. @throws ReveilleError `not_found` */
  test(id: string): Promise<string | undefined>;
};

/** What may have changed: screens that show it look again. */
export const HINTS = ['alarms', 'approvals', 'machines', 'day'] as const;
export type Hint = (typeof HINTS)[number];

/** When a schedule rings: cron fields read in a zone, or `@every …` counted from an instant. */
export type RingsOf = (schedule: {
  readonly cron: string;
  readonly zone: string;
  /** Epoch ms; rings come after it. */
  readonly after: number;
  readonly until: number;
  readonly atMost: number;
}) => readonly number[];

/** What the schedule engine answers about a series; instants are epoch ms. */
export type Series = {
  /** The first fire after an instant. */
  next(after: number): number | undefined;
  /** The last fire in `(after, until]` and how many there are, counted without a context to each. */
  latest(after: number, until: number): { readonly at: number; readonly count: number } | undefined;
};

/** @param schedule.anchor a fire of an `@every` series, from which the others are counted */
export type SeriesOf = (schedule: { readonly cron: string; readonly zone: string; readonly anchor: number }) => Series;

export type Desk = {
  /** Whose alarms and machine these are. */
  readonly user: string;
  /** Who sits here, as receipts and alarms name them. */
  readonly name: string;
  /** IANA; every time is shown in it. */
  readonly zone: string;
  readonly alarms: Part<ChronosClient>;
  readonly machines: Part<Pick<RouterClient, 'show' | 'changes' | 'suspend' | 'restore'>>;
  /** The last lines that the machine wrote, oldest first; without secrets. */
  readonly machineLog: Part<() => Promise<readonly string[]>>;
  /** The person's own daemon, reached as a person; a call wakes the machine. */
  readonly agent: Part<NeoClient>;
  readonly intents: Part<ExecutorClient>;
  readonly approver: Part<ApproverPort>;
  readonly passkeys: Part<PasskeyPort>;
  /** The console by the name `localhost`, where nobody else can be reached by it; without it, there is no such name. */
  readonly localhost?: () => string | undefined;
  readonly verifyReceipt: (receipt: string) => Promise<ReceiptVerdict>;
  readonly notices: Part<Notices>;
  readonly health: Part<() => Promise<readonly Check[]>>;
  readonly places: readonly ConsoleLocation[];
  readonly day: Part<(date: string | undefined) => Promise<DayView>>;
  readonly ringsOf: RingsOf;
  readonly seriesOf: SeriesOf;
  /** Calls back when something may have changed; it must be cheap to have many. @returns ends it */
  readonly onHint: (listener: (hint: Hint) => void) => () => void;
};
