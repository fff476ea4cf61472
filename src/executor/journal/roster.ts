/**
 * The roster: whose keys may answer the questions of which user. The first key of a user is enrolled on the operator's
 * word, and, where the executor is one person's, on that of an approver besides; each further one needs the signature
 * of a key that stands, and so does an end. So whoever reads the operator's token cannot make itself an approver where
 * there is one. Every method is synchronous; what changes the roster runs inside a transaction of its own.
 */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { Clock } from '../../kit/clock/clock.ts';
import { verifySignature } from '../../kit/identity/keys.ts';
import type { GroupCommit } from '../../kit/sqlite/group-commit.ts';
import {
  APPROVERS_PER_USER,
  type ApproverRequest,
  type ApproverView,
  type EnrollmentStatement,
  enrollmentText,
  type RevocationRequest,
  revocationText,
  SIGNED_AHEAD_MS,
} from '../../wire/approver.ts';
import { ownerOf } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';

const OPERATOR = 'operator';

/**
 * Whose word the first approver of a user needs. `operator`: that of whoever holds the administrator's token.
 * `vouched`: also that of somebody who stands for any user, once there is one. Where one person's tools are behind the
 * executor, whoever has its tokens could else make up a user, hand tasks over as that user, and approve them.
 */
export const ENROLLMENTS = ['operator', 'vouched'] as const;
export type Enrollment = (typeof ENROLLMENTS)[number];

type Row = {
  readonly seq: number;
  readonly user: string;
  readonly publicKey: string;
  readonly name: string;
  readonly enrolledAt: number;
  readonly expiresAt: string;
  readonly signature: string;
  readonly voucher: { readonly approver: string; readonly signature: string } | undefined;
  readonly revokedAt: number | undefined;
  readonly revokedBy: string | undefined;
};

/** A row, and whether it came there in the way that it says. */
type Judged = { readonly row: Row; readonly isGenuine: boolean };

export type RosterReset = { readonly user: string; readonly at: string };

export type Roster = {
  /** What an approver who stands for this user is called; `undefined` for any other key. */
  standing(user: string, publicKey: string): string | undefined;
  /** In order of enrolment, revoked ones included. @param user of everybody unless told */
  list(user?: string): ApproverView[];
  resets(user?: string): RosterReset[];
  /**
   * @throws ReveilleError `conflict` for a key that was enrolled before or a statement for another executor,
   * `forbidden` without a signature that is needed, `rate_limited`
   */
  enroll(request: ApproverRequest): ApproverView;
  /**
   * @throws ReveilleError `not_found`, `forbidden` without the signature of a key that stands, `conflict` for the last
   * key that stands
   */
  revoke(request: RevocationRequest): ApproverView;
  /**
   * Begins a user's roster anew: what stands is revoked, and the next key is a first one again. @returns how many were
   * revoked
   */
  reset(user: string): number;
};

function rowOf(row: Record<string, SQLOutputValue>): Row {
  const voucher = row.voucher as string | null;
  return {
    seq: row.seq as number,
    user: row.user_id as string,
    publicKey: row.public_key as string,
    name: row.name as string,
    enrolledAt: row.enrolled_at as number,
    expiresAt: row.expires_at as string,
    signature: row.signature as string,
    voucher: voucher === null ? undefined : { approver: voucher, signature: row.voucher_signature as string },
    revokedAt: (row.revoked_at as number | null) ?? undefined,
    revokedBy: (row.revoked_by as string | null) ?? undefined,
  };
}

function viewOf({ row, isGenuine }: Judged): ApproverView {
  const { publicKey, name, user, enrolledAt, voucher, revokedAt, revokedBy } = row;
  return {
    ...{ approver: publicKey, name, user, enrolled_at: formatInstant(enrolledAt) },
    enrolled_by: voucher?.approver ?? OPERATOR,
    ...(revokedAt === undefined ? {} : { revoked_at: formatInstant(revokedAt), revoked_by: revokedBy ?? OPERATOR }),
    ...(isGenuine ? {} : { forged: true as const }),
  };
}

/** @throws ReveilleError `forbidden` for a statement that is past, or lasts too long */
export function refuseStale(expiresAt: string, now: number): void {
  const until = parseInstant(expiresAt)!;
  const clock = `this executor's clock says ${formatInstant(now)}`;
  if (until <= now) throw new ReveilleError('forbidden', `expires_at ${expiresAt} is past (${clock}); sign it anew`);
  if (until > now + SIGNED_AHEAD_MS)
    throw new ReveilleError('forbidden', `expires_at ${expiresAt} is more than 24 hours ahead (${clock})`);
}

export type RosterOptions = {
  readonly db: DatabaseSync;
  readonly writes: GroupCommit;
  readonly clock: Clock;
  /** The public key that the executor signs receipts with. */
  readonly executor: string;
  readonly enrollment: Enrollment;
};

export function openRoster({ db, writes, clock, executor, enrollment }: RosterOptions): Roster {
  const all = db.prepare('SELECT * FROM approvers ORDER BY seq');
  const ofUser = db.prepare('SELECT * FROM approvers WHERE user_id = ? ORDER BY seq');
  const resetsOf = db.prepare('SELECT user_id, at, after_seq FROM approver_resets WHERE user_id = ? ORDER BY rowid');
  const allResets = db.prepare('SELECT user_id, at, after_seq FROM approver_resets ORDER BY rowid');
  const insert = db.prepare(`
    INSERT INTO approvers (user_id, public_key, name, enrolled_at, expires_at, signature, voucher, voucher_signature)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`);
  const end = db.prepare(
    'UPDATE approvers SET revoked_at = ?, revoked_by = ? WHERE user_id = ? AND public_key = ? AND revoked_at IS NULL',
  );
  const endAll = db.prepare(
    'UPDATE approvers SET revoked_at = ?, revoked_by = ? WHERE user_id = ? AND revoked_at IS NULL',
  );
  const begin = db.prepare(`
    INSERT INTO approver_resets (user_id, at, after_seq)
    SELECT ?, ?, coalesce(max(seq), 0) FROM approvers WHERE user_id = ?`);

  const statementOf = ({ publicKey, name, user, expiresAt }: Row): EnrollmentStatement => ({
    ...{ approver: publicKey, name, user, executor, expires_at: expiresAt },
  });

  /**
   * A user's rows; one counts only if its signatures hold: a line that was written into the file makes nobody an
   * approver.
   */
  function rows(user: string): Judged[] {
    const begins = new Set(resetsOf.all(user).map(({ after_seq }) => after_seq as number));
    const known = new Set<string>();
    let isFirst = true;
    let before = 0;
    return ofUser.all(user).map((found) => {
      const row = rowOf(found);
      for (const seq of begins) if (seq >= before && seq < row.seq) isFirst = true;
      if (isFirst) known.clear();
      const text = enrollmentText(statementOf(row));
      const { voucher } = row;
      const isVouched =
        voucher === undefined
          ? isFirst
          : (isFirst || known.has(voucher.approver)) && verifySignature(voucher.approver, text, voucher.signature);
      const isGenuine = isVouched && verifySignature(row.publicKey, text, row.signature);
      if (isGenuine) {
        known.add(row.publicKey);
        isFirst = false;
      }
      before = row.seq;
      return { row, isGenuine };
    });
  }

  const standingOf = (user: string) =>
    rows(user).filter(({ row, isGenuine }) => isGenuine && row.revokedAt === undefined);

  const users = () => new Set(all.all().map(({ user_id }) => user_id as string));

  /**
   * @param whose whose approvers may vouch: one user's, or everybody's
   * @throws ReveilleError `forbidden` unless a key that stands has signed this
   */
  function holdToVoucher(whose: string | undefined, text: string, voucher: ApproverRequest['voucher']): void {
    const there = whose === undefined ? [...users()].flatMap(standingOf) : standingOf(whose);
    const keys = there.map(({ row }) => row.publicKey);
    const who = whose === undefined ? 'this executor' : whose;
    if (voucher === undefined)
      throw new ReveilleError(
        'forbidden',
        `voucher is missing: ${who} has an approver already, and one of them has to sign this (${keys.map((key) => `${key.slice(0, 16)}…`).join(', ')})`,
      );
    if (!keys.includes(voucher.approver))
      throw new ReveilleError(
        'forbidden',
        `voucher.approver ${voucher.approver} does not stand as an approver of ${who}`,
      );
    if (!verifySignature(voucher.approver, text, voucher.signature))
      throw new ReveilleError('forbidden', 'voucher.signature is not one of voucher.approver over this statement');
  }

  function refuseOther(given: string): void {
    if (given === executor) return;
    throw new ReveilleError('conflict', `executor must be this executor's public key, ${executor} (got ${given})`);
  }

  const judgedOf = (user: string, publicKey: string) => rows(user).find(({ row }) => row.publicKey === publicKey);

  return {
    standing: (user, publicKey) => standingOf(user).find(({ row }) => row.publicKey === publicKey)?.row.name,

    list(user) {
      const whose = user === undefined ? users() : [ownerOf(user)];
      return [...whose].flatMap((each) => rows(each).map(viewOf));
    },

    resets(user) {
      const found = user === undefined ? allResets.all() : resetsOf.all(ownerOf(user));
      return found.map(({ user_id, at }) => ({ user: user_id as string, at: formatInstant(at as number) }));
    },

    enroll: (request) =>
      writes.runNow(() => {
        const now = clock.now();
        const user = ownerOf(request.user);
        const { approver, name, expires_at, signature, voucher } = request;
        refuseOther(request.executor);
        refuseStale(expires_at, now);
        const text = enrollmentText({ ...request, user });
        if (approver === executor)
          throw new ReveilleError('forbidden', 'approver must not be the key of the executor itself');
        if (!verifySignature(approver, text, signature))
          throw new ReveilleError('forbidden', 'signature is not one of approver over this statement');
        const known = rows(user);
        const before = known.find(({ row }) => row.publicKey === approver);
        if (before?.row.revokedAt !== undefined)
          throw new ReveilleError(
            'conflict',
            `${approver} was revoked for ${user} and cannot come back; use a new key`,
          );
        if (before) throw new ReveilleError('conflict', `${approver} is an approver of ${user} already`);
        if (known.length >= APPROVERS_PER_USER)
          throw new ReveilleError('rate_limited', `${user} has had ${APPROVERS_PER_USER} approvers; that is the limit`);
        const begun = resetsOf.all(user).reduce((seq, { after_seq }) => Math.max(seq, after_seq as number), 0);
        const isFirst = !known.some(({ row, isGenuine }) => isGenuine && row.seq > begun);
        const isAlone =
          isFirst && (enrollment === 'operator' || ![...users()].some((one) => standingOf(one).length > 0));
        if (!isAlone) holdToVoucher(isFirst ? undefined : user, text, voucher);
        const by = isAlone ? undefined : voucher!;
        insert.run(user, approver, name, now, expires_at, signature, by?.approver ?? null, by?.signature ?? null);
        return viewOf(judgedOf(user, approver)!);
      }),

    revoke: (request) =>
      writes.runNow(() => {
        const now = clock.now();
        const user = ownerOf(request.user);
        const { approver, expires_at, voucher } = request;
        refuseOther(request.executor);
        refuseStale(expires_at, now);
        const found = judgedOf(user, approver);
        if (!found) throw new ReveilleError('not_found', `${approver} is no approver of ${user}`);
        if (found.row.revokedAt !== undefined) return viewOf(found);
        holdToVoucher(user, revocationText({ ...request, user }), voucher);
        const standing = standingOf(user);
        if (standing.length === 1 && standing[0]!.row.publicKey === approver) {
          const message = `${approver} is the last approver of ${user}: enrol another one first, or have the operator stop the executor and run "reveille approver reset --user ${user}"`;
          throw new ReveilleError('conflict', message);
        }
        end.run(now, voucher.approver, user, approver);
        return viewOf(judgedOf(user, approver)!);
      }),

    reset: (user) =>
      writes.runNow(() => {
        const owner = ownerOf(user);
        const now = clock.now();
        const { changes } = endAll.run(now, OPERATOR, owner);
        begin.run(owner, now, owner);
        return Number(changes);
      }),
  };
}
