/**
 * Links that answer one question from a notification. A link is for one user, one question with its exact call, one answer
 * and a few minutes. Its use invalidates all links of that question. The secret creates links; used ones are stored. A
 * page at {@link APPROVAL_PATH} shows the result of {@link ApprovalLinks.read}, which changes nothing, and asks for
 * confirmation. Only its form may call {@link ApprovalLinks.use}.
 */
import { hash } from 'node:crypto';
import type { WaitingGate } from '../executor/client.ts';
import type { Clock } from '../kit/clock/clock.ts';
import { randomSecret, sameSecret, seal } from '../kit/identity/secrets.ts';
import type { Question } from './news.ts';
import type { NotifyStore } from './store.ts';

/** Below the console's address; the link's token follows. */
export const APPROVAL_PATH = '/answer/';
/** Validity, from the notification on. */
export const LINK_MS = 15 * 60_000;

const VERSION = 'a1';
/** Longer than any token. */
const MOST_CHARACTERS = 1200;

/** The content of a link. */
export type ApprovalLink = {
  readonly user: string;
  readonly intentId: string;
  readonly nodeId: string;
  readonly callSha256: string;
  readonly displayedSha256: string;
  readonly approved: boolean;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
};

/** Wrong passphrases after which the links of a question are locked. */
export const PASSPHRASES_MAX = 5;

export const LINK_REFUSALS = ['malformed', 'forged', 'expired', 'used', 'locked', 'changed'] as const;
/**
 * `malformed`, `forged`: not created here. `expired`: too old. `used`: its question was answered by a link. `locked`: too
 * many wrong passphrases. `changed`: the question no longer waits in the notified form.
 */
export type LinkRefusal = (typeof LINK_REFUSALS)[number];

export type LinkVerdict =
  | { readonly ok: true; readonly link: ApprovalLink }
  | { readonly ok: false; readonly why: LinkRefusal };

export type LinkFigures = Record<LinkRefusal | 'accepted', number>;

const encoded = (text: string) => Buffer.from(text, 'utf8').toString('base64url');
const decoded = (text: string) => Buffer.from(text, 'base64url').toString('utf8');
const digest = (hex: string) => Buffer.from(hex, 'hex').toString('base64url');
const undigest = (text: string) => Buffer.from(text, 'base64url').toString('hex');

/** A token for one answer to one question. */
export function makeApprovalToken(
  secret: string,
  { user, question, approved }: { user: string; question: Question; approved: boolean },
  now: number,
): string {
  const { intent_id, node_id, call_sha256, displayed_sha256, expires_at } = question;
  const expiresAt = Math.min(now + LINK_MS, Date.parse(expires_at));
  const text = [
    ...[VERSION, encoded(user), encoded(intent_id), encoded(node_id), digest(call_sha256), digest(displayed_sha256)],
    ...[approved ? 'y' : 'n', expiresAt.toString(36), randomSecret(9)],
  ].join('.');
  return `${text}.${seal(secret, text)}`;
}

const TOKEN =
  /^a1(?:\.[A-Za-z0-9_-]+){3}(?:\.[A-Za-z0-9_-]{43}){2}\.[yn]\.[0-9a-z]{1,11}\.[A-Za-z0-9_-]{12}\.[A-Za-z0-9_-]{43}$/;

/** Reads and uses tokens, each at most once, also across a restart. */
export class ApprovalLinks {
  readonly #store: NotifyStore;
  readonly #secret: string;
  readonly #clock: Clock;
  /** Counts of accepted tokens and of rejections by reason. */
  readonly figures: LinkFigures = { accepted: 0, malformed: 0, forged: 0, expired: 0, used: 0, locked: 0, changed: 0 };

  constructor({ store, secret, clock }: { store: NotifyStore; secret: string; clock: Clock }) {
    this.#store = store;
    this.#secret = secret;
    this.#clock = clock;
  }

  /** The content of a valid link. Changes only the counts of rejections. */
  read(token: string): LinkVerdict {
    const verdict = this.#verdict(token);
    if (!verdict.ok) this.figures[verdict.why]++;
    return verdict;
  }

  /**
   * Uses a link. Its answer may be given only then, and only once.
   *
   * @param waiting the waiting questions of the link's intent, from the executor
   */
  use(token: string, waiting: readonly WaitingGate[]): LinkVerdict {
    const verdict = this.#verdict(token);
    const outcome = verdict.ok ? this.#useUp(verdict.link, waiting) : verdict;
    this.figures[outcome.ok ? 'accepted' : outcome.why]++;
    return outcome;
  }

  /**
   * Counts a passphrase before it is checked, so that parallel guesses count as well.
   *
   * @returns false when too many were wrong: it must not be checked
   */
  tryPassphrase(link: ApprovalLink): boolean {
    const count = this.#store.sql(`
      INSERT INTO wrong_passphrases (question, tries, expires_at) VALUES (:question, 1, :until)
      ON CONFLICT (question) DO UPDATE SET tries = tries + 1, expires_at = :until WHERE tries < :most`);
    const until = this.#clock.now() + 2 * LINK_MS;
    const { changes } = count.run({ question: questionOf(link), until, most: PASSPHRASES_MAX });
    if (changes === 0) this.figures.locked++;
    return changes === 1;
  }

  /** Removes a passphrase from the count: it was right, or was not checked. */
  uncountPassphrase(link: ApprovalLink): void {
    const uncount = this.#store.sql('UPDATE wrong_passphrases SET tries = tries - 1 WHERE question = ? AND tries > 0');
    uncount.run(questionOf(link));
  }

  #useUp(link: ApprovalLink, waiting: readonly WaitingGate[]): LinkVerdict {
    const gate = waiting.find(({ node_id }) => node_id === link.nodeId);
    const isSame = gate?.displayed_sha256 === link.displayedSha256 && gate.call.call_sha256 === link.callSha256;
    if (!isSame) return { ok: false, why: 'changed' };
    const add = this.#store.sql('INSERT OR IGNORE INTO used_links (question, expires_at) VALUES (?, ?)');
    // Longer than any link of this question.
    const { changes } = add.run(questionOf(link), this.#clock.now() + 2 * LINK_MS);
    return changes === 1 ? { ok: true, link } : { ok: false, why: 'used' };
  }

  #verdict(token: string): LinkVerdict {
    if (token.length > MOST_CHARACTERS || !TOKEN.test(token)) return { ok: false, why: 'malformed' };
    const end = token.lastIndexOf('.');
    const text = token.slice(0, end);
    if (!sameSecret(token.slice(end + 1), seal(this.#secret, text))) return { ok: false, why: 'forged' };
    const [, user, intent, node, call, displayed, answer, expires] = text.split('.') as string[];
    const link: ApprovalLink = {
      ...{ user: decoded(user!), intentId: decoded(intent!), nodeId: decoded(node!) },
      ...{ callSha256: undigest(call!), displayedSha256: undigest(displayed!) },
      ...{ approved: answer === 'y', expiresAt: Number.parseInt(expires!, 36) },
    };
    const now = this.#clock.now();
    // A link with a later expiry was created before a clock was set back.
    if (link.expiresAt <= now || link.expiresAt > now + LINK_MS) return { ok: false, why: 'expired' };
    const isUsed = this.#store.sql('SELECT 1 FROM used_links WHERE question = ?').get(questionOf(link)) !== undefined;
    if (isUsed) return { ok: false, why: 'used' };
    const wrong = this.#store.sql('SELECT tries FROM wrong_passphrases WHERE question = ?').get(questionOf(link));
    const isLocked = ((wrong?.tries as number | undefined) ?? 0) >= PASSPHRASES_MAX;
    return isLocked ? { ok: false, why: 'locked' } : { ok: true, link };
  }
}

/** A repeated question is a new one. */
const questionOf = ({ user, intentId, nodeId, displayedSha256 }: ApprovalLink) =>
  hash('sha256', JSON.stringify([user, intentId, nodeId, displayedSha256]));
