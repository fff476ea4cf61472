/**
 * The backend calls of a console session, limited to one user: clients with the rights of that user alone, and facts of
 * the installation. A missing part has a reason with a remedy, which its screens show.
 */
import type { NeoClient } from '../agents/neo/client.ts';
import type { ChronosClient } from '../chronos/client.ts';
import type { ExecutorClient } from '../executor/client.ts';
import type { PhraseHours } from '../kit/phrase/reading.ts';
import type { RouterClient } from '../router/client.ts';
import type { AlarmView } from '../wire/alarm.ts';
import type { ApproverView } from '../wire/approver.ts';
import type { DayView } from '../wire/chronometric-view.ts';
import type { GateAnswer } from '../wire/executor.ts';
import type { PasskeyRequest } from '../wire/passkey.ts';
import type { Ended } from '../wire/person.ts';

/** An available part, or the reason why it is missing. */
export type Part<T> = { readonly there: T } | { readonly missing: string };

/** The key of this computer that signs the user's answers. */
export type ApproverPort = {
  /** The key, and whether it is sealed with a passphrase. */
  known(): { readonly publicKey: string; readonly name: string; readonly isSealed: boolean } | undefined;
  /**
   * Signs an answer. @throws ReveilleError `forbidden` for a wrong passphrase, `not_found` without a key, `unavailable`
   * if the system's key store refuses it
   */
  sign(
    answer: Pick<GateAnswer, 'approved' | 'answer' | 'call_sha256' | 'displayed_sha256'>,
    about: { intentId: string; nodeId: string },
    passphrase: string | undefined,
  ): Promise<GateAnswer>;
};

/** The user's passkeys in the roster of approvers, and the key that signs their enrolment. */
export type PasskeyPort = {
  /** Checks the passphrase. @throws ReveilleError as `ApproverPort.sign` */
  opens(passphrase: string | undefined): Promise<void>;
  /** All passkeys, including revoked ones. */
  list(): Promise<readonly ApproverView[]>;
  /** Enrols a passkey. @throws ReveilleError as `ApproverPort.sign`, and errors of the executor */
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

/** The location of a file, folder or listener. */
export type ConsoleLocation = { readonly name: string; readonly where: string };

/** The result of a receipt's verification, as `reveille receipt verify` prints it. */
export type ReceiptVerdict = { readonly isWhole: boolean; readonly lines: readonly string[] };

/** A notification channel of the user, without secrets. */
export type NotificationChannel = {
  readonly id: string;
  readonly name: string;
  readonly place: string;
  readonly told: readonly string[];
  readonly quiet?: { readonly from: string; readonly to: string; readonly timezone: string } | undefined;
  /** Epoch ms. */
  readonly lastSentAt: number | undefined;
  readonly lastError: string | undefined;
  readonly isPaused: boolean;
};

/** The notification channels of the user. */
export type ConsoleNotifications = {
  /** All kinds of notifications, and the default ones. */
  readonly kinds: readonly string[];
  readonly standard: readonly string[];
  /** The `applicationServerKey` that a browser subscribes with, in base64url. */
  pushKey(): string;
  list(): readonly NotificationChannel[];
  /**
   * Adds a browser by its push subscription. @throws ReveilleError `invalid_request` with the reason, `conflict` for a
   * used name
   */
  add(
    subscription: { readonly endpoint: unknown; readonly keys: unknown },
    options: {
      readonly name: string | undefined;
      readonly told: readonly string[];
      readonly quiet: { readonly from: string; readonly to: string; readonly timezone: string } | undefined;
    },
  ): NotificationChannel;
  /** @throws ReveilleError `not_found` */
  remove(id: string): NotificationChannel;
  /** Sends a test notification. @returns the error of the delivery. @throws ReveilleError `not_found` */
  test(id: string): Promise<string | undefined>;
};

/** A client with access to the user's alarms through the authorization server. */
export type ConnectedClient = {
  readonly id: string;
  readonly clientId: string;
  /** The host that the client's document was read from; `undefined` for a client that registered itself. */
  readonly host: string | undefined;
  /** The client's name, as the client gives it. */
  readonly name: string | undefined;
  /** The host to which the browser was redirected; `undefined` for a device. */
  readonly goesTo: string | undefined;
  readonly scopes: readonly string[];
  /** Epoch ms. */
  readonly createdAt: number;
  readonly usedAt: number | undefined;
};

export type ConnectedClients = {
  list(): Promise<readonly ConnectedClient[]>;
  /**
   * Ends its access at once.
   *
   * @returns what ended with it; `undefined` while another connection of the same client stays
   * @throws ReveilleError `not_found`
   */
  revoke(id: string): Promise<{ client: ConnectedClient; ended: Ended | undefined }>;
};

/** Kinds of changes. Open screens of that kind load again. */
export const HINTS = ['alarms', 'approvals', 'machines', 'day'] as const;
export type Hint = (typeof HINTS)[number];

/** A series: cron fields, `@every …` or recurrence rules, in a zone. */
export type Rhythm = {
  readonly cron?: string | undefined;
  /** Content lines of RFC 5545. */
  readonly rrule?: string | undefined;
  /** Epoch ms, where rules without DTSTART begin. */
  readonly start?: number | undefined;
  readonly zone: string;
  /** The calendar whose days are excluded. */
  readonly holidays?: string | undefined;
};

/** The fires of a schedule; those of `@every …`, and of rules without a start, are counted from `after`. */
export type FireTimesOf = (
  schedule: Rhythm & {
    /** Epoch ms; the fires are later. */
    readonly after: number;
    readonly until: number;
    readonly atMost: number;
  },
) => readonly number[];

/** A series of the schedule engine; instants are epoch ms. */
export type Series = {
  /** The first fire after an instant. */
  next(after: number): number | undefined;
  /** The last fire in `(after, until]` and how many there are, counted without iterating. */
  latest(after: number, until: number): { readonly at: number; readonly count: number } | undefined;
};

/** @param schedule.anchor a fire of an `@every` series, from which the others are counted */
export type SeriesOf = (schedule: Rhythm & { readonly anchor: number }) => Series;

export type ConsoleBackend = {
  /** The owner of the alarms and the machine. */
  readonly user: string;
  /** The name of the user in receipts and alarms. */
  readonly name: string;
  /** IANA; every time is shown in it. */
  readonly zone: string;
  /** The hours of the user for times in words; by default, the usual ones. */
  readonly hours?: () => Promise<PhraseHours>;
  readonly alarms: Part<ChronosClient>;
  readonly machines: Part<Pick<RouterClient, 'show' | 'changes' | 'suspend' | 'restore'>>;
  /** The last lines of the machine's log, oldest first, without secrets. */
  readonly machineLog: Part<() => Promise<readonly string[]>>;
  /** The user's agent. A call starts the machine. */
  readonly agent: Part<NeoClient>;
  readonly intents: Part<ExecutorClient>;
  readonly approver: Part<ApproverPort>;
  readonly passkeys: Part<PasskeyPort>;
  /** The console's address at `localhost`; `undefined` if another program listens there. */
  readonly localhost?: () => string | undefined;
  readonly verifyReceipt: (receipt: string) => Promise<ReceiptVerdict>;
  readonly notices: Part<ConsoleNotifications>;
  readonly clients: Part<ConnectedClients>;
  readonly health: Part<() => Promise<readonly Check[]>>;
  readonly places: readonly ConsoleLocation[];
  readonly day: Part<(date: string | undefined) => Promise<DayView>>;
  /**
   * Reads the calendars of alarms, which `ringsOf` and `seriesOf` then know; absent where those of the process are the
   * ones of chronosd.
   */
  readonly readCalendars?: (alarms: readonly Pick<AlarmView, 'holidays' | 'timezone'>[]) => Promise<void>;
  readonly ringsOf: FireTimesOf;
  readonly seriesOf: SeriesOf;
  /** Calls back when something may have changed; it must be cheap to have many. @returns ends it */
  readonly onHint: (listener: (hint: Hint) => void) => () => void;
};
