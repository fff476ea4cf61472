/**
 * The roster of approvers: the keys that may answer the questions of each user. The operator's authority enrols the
 * first key of a user. On an executor of one person, an existing approver must sign too. Each further enrolment and
 * each revocation needs the signature of an active key. So a program that reads the operator's token cannot become an
 * approver of a user who has one. A passkey is never the first approver and cannot sign enrolments or revocations.
 * Every method is synchronous; each change runs in its own transaction, except `recordUse`.
 */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { Clock } from '../../kit/clock/clock.ts';
import { verifySignature } from '../../kit/identity/keys.ts';
import { originProblem, passkeyId, signCountOf } from '../../kit/identity/passkey.ts';
import type { GroupCommit } from '../../kit/sqlite/group-commit.ts';
import {
  APPROVERS_PER_USER,
  type ApproverRequest,
  type ApproverView,
  enrollmentText,
  type RevocationRequest,
  revocationText,
  SIGNED_AHEAD_MS,
} from '../../wire/approver.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';
import { ownerOf } from '../../wire/did.ts';
import { type ErrorCode, ReveilleError } from '../../wire/errors.ts';
import {
  type Assertion,
  type OfferedPasskey,
  type Passkey,
  type PasskeyRequest,
  passkeyEnrollmentText,
  passkeySchema,
} from '../../wire/passkey.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';

const OPERATOR = 'operator';

/**
 * The authority that the first approver of a user needs. `operator`: the admin token. `vouched`: also the signature of
 * an active approver of any user, once there is one. `vouched` is for an executor with one person's tools: otherwise a
 * holder of its tokens could invent a user, submit tasks as that user, and approve them.
 */
export const ENROLLMENTS = ['operator', 'vouched'] as const;
export type Enrollment = (typeof ENROLLMENTS)[number];

/** A credential and the signature counter of its last answer. */
type StoredPasskey = { readonly credential: Passkey; readonly signCount: number };

type Row = {
  readonly seq: number;
  readonly user: string;
  readonly publicKey: string;
  readonly name: string;
  readonly enrolledAt: number;
  readonly expiresAt: string;
  /** Signature by the key itself; a passkey has none. */
  readonly signature: string;
  readonly voucher: { readonly approver: string; readonly signature: string } | undefined;
  readonly passkey: StoredPasskey | undefined;
  readonly revokedAt: number | undefined;
  readonly revokedBy: string | undefined;
};

/** A row, and whether its signatures are valid. */
type CheckedRow = { readonly row: Row; readonly isGenuine: boolean };

export type RosterReset = { readonly user: string; readonly at: string };

/** An approver who may answer. */
export type ActiveApprover = { readonly name: string; readonly passkey?: StoredPasskey };

export type Roster = ReturnType<typeof openRoster>;

/** Reads the passkey column. An unreadable text gives an empty credential, whose id does not match the row. */
function keptPasskey(text: string | null, signCount: number): StoredPasskey | undefined {
  if (text === null) return undefined;
  const none = { credential_id: '', origin: '', public_key: '', rp_id: '' };
  try {
    const { success, data } = passkeySchema.safeParse(JSON.parse(text));
    return { credential: success ? data : none, signCount };
  } catch {
    return { credential: none, signCount };
  }
}

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
    passkey: keptPasskey(row.passkey as string | null, row.sign_count as number),
    revokedAt: (row.revoked_at as number | null) ?? undefined,
    revokedBy: (row.revoked_by as string | null) ?? undefined,
  };
}

function offered({ publicKey, name, passkey }: Row): OfferedPasskey[] {
  if (!passkey) return [];
  const { credential_id, origin, rp_id } = passkey.credential;
  return [{ approver: publicKey, name, credential_id, origin, rp_id }];
}

function passkeyView({ credential: { credential_id, origin, rp_id }, signCount }: StoredPasskey) {
  return { passkey: { credential_id, origin, rp_id, sign_count: signCount } };
}

function viewOf({ row, isGenuine }: CheckedRow): ApproverView {
  const { publicKey, name, user, enrolledAt, voucher, passkey, revokedAt, revokedBy } = row;
  return {
    ...{ approver: publicKey, name, user, enrolled_at: formatInstant(enrolledAt) },
    enrolled_by: voucher?.approver ?? OPERATOR,
    ...(passkey && passkeyView(passkey)),
    ...(revokedAt === undefined ? {} : { revoked_at: formatInstant(revokedAt), revoked_by: revokedBy ?? OPERATOR }),
    ...(isGenuine ? {} : { forged: true as const }),
  };
}

function refuse(code: ErrorCode, message: string): never {
  throw new ReveilleError(code, message);
}

/** @throws ReveilleError `forbidden` for a statement that has expired or expires too late */
export function checkExpiry(expiresAt: string, now: number): void {
  const until = parseInstant(expiresAt)!;
  const clock = `this executor's clock is at ${formatInstant(now)}`;
  if (until <= now) refuse('forbidden', `expires_at ${expiresAt} is past (${clock}); sign it again`);
  if (until > now + SIGNED_AHEAD_MS)
    refuse('forbidden', `expires_at ${expiresAt} is more than 24 hours ahead (${clock})`);
}

export type RosterOptions = {
  readonly db: DatabaseSync;
  readonly writes: GroupCommit;
  readonly clock: Clock;
  /** The public key that the executor signs receipts with. */
  readonly executor: string;
  readonly enrollment: Enrollment;
};

export function openRoster({ db, writes, clock, executor, enrollment }: RosterOptions) {
  const all = db.prepare('SELECT * FROM approvers ORDER BY seq');
  const ofUser = db.prepare('SELECT * FROM approvers WHERE user_id = ? ORDER BY seq');
  const resetsOf = db.prepare('SELECT user_id, at, after_seq FROM approver_resets WHERE user_id = ? ORDER BY rowid');
  const allResets = db.prepare('SELECT user_id, at, after_seq FROM approver_resets ORDER BY rowid');
  const insert = db.prepare(`
    INSERT INTO approvers
      (user_id, public_key, name, enrolled_at, expires_at, signature, voucher, voucher_signature, passkey)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  const count = db.prepare('UPDATE approvers SET sign_count = ? WHERE user_id = ? AND public_key = ?');
  const revokeOne = db.prepare(
    'UPDATE approvers SET revoked_at = ?, revoked_by = ? WHERE user_id = ? AND public_key = ? AND revoked_at IS NULL',
  );
  const revokeAll = db.prepare(
    'UPDATE approvers SET revoked_at = ?, revoked_by = ? WHERE user_id = ? AND revoked_at IS NULL',
  );
  const insertReset = db.prepare(`
    INSERT INTO approver_resets (user_id, at, after_seq)
    SELECT ?, ?, coalesce(max(seq), 0) FROM approvers WHERE user_id = ?`);

  /** The enrolment statement that a row's signatures cover. */
  function textOf({ publicKey, name, user, expiresAt, passkey }: Row): string {
    const about = { name, user, executor, expires_at: expiresAt };
    if (passkey) return passkeyEnrollmentText({ ...about, passkey: passkey.credential });
    return enrollmentText({ ...about, approver: publicKey });
  }

  /**
   * A user's rows. A row counts only if its signatures are valid: a row that was written into the file directly creates
   * no approver.
   */
  function rows(user: string): CheckedRow[] {
    const begins = new Set(resetsOf.all(user).map(({ after_seq }) => after_seq as number));
    const known = new Set<string>();
    let isFirst = true;
    let lastSeq = 0;
    return ofUser.all(user).map((found) => {
      const row = rowOf(found);
      for (const seq of begins) if (seq >= lastSeq && seq < row.seq) isFirst = true;
      if (isFirst) known.clear();
      const text = textOf(row);
      const { voucher, passkey } = row;
      const hasVoucher =
        voucher === undefined
          ? isFirst && !passkey
          : ((isFirst && !passkey) || known.has(voucher.approver)) &&
            verifySignature(voucher.approver, text, voucher.signature);
      const hasOwnProof = passkey
        ? passkeyId(passkey.credential) === row.publicKey
        : verifySignature(row.publicKey, text, row.signature);
      const isGenuine = hasVoucher && hasOwnProof;
      if (isGenuine && !passkey) {
        known.add(row.publicKey);
        isFirst = false;
      }
      lastSeq = row.seq;
      return { row, isGenuine };
    });
  }

  const activeOf = (user: string) =>
    rows(user).filter(({ row, isGenuine }) => isGenuine && row.revokedAt === undefined);

  const users = () => new Set(all.all().map(({ user_id }) => user_id as string));

  /**
   * @param owner the user whose approvers may sign; `undefined` for all users
   * @throws ReveilleError `forbidden` unless an active key has signed this
   */
  function requireVoucher(owner: string | undefined, text: string, voucher: ApproverRequest['voucher']): void {
    const approvers = owner === undefined ? [...users()].flatMap(activeOf) : activeOf(owner);
    const keys = approvers.flatMap(({ row }) => (row.passkey ? [] : [row.publicKey]));
    const scope = owner === undefined ? 'this executor' : owner;
    if (voucher === undefined)
      refuse(
        'forbidden',
        `voucher is missing: ${scope} already has approvers, and one of them must sign this (${keys.map((key) => `${key.slice(0, 16)}…`).join(', ')})`,
      );
    if (!keys.includes(voucher.approver))
      refuse('forbidden', `voucher.approver ${voucher.approver} is not an active approver of ${scope}`);
    if (!verifySignature(voucher.approver, text, voucher.signature))
      refuse('forbidden', 'voucher.signature is not the signature of voucher.approver over this statement');
  }

  function requireThisExecutor(given: string): void {
    if (given === executor) return;
    refuse('conflict', `executor must be this executor's public key, ${executor} (got ${given})`);
  }

  /** @throws ReveilleError `forbidden` for a key without proof of possession */
  function newKey(request: ApproverRequest) {
    const { approver, signature } = request;
    const text = enrollmentText({ ...request, user: ownerOf(request.user) });
    if (approver === executor) refuse('forbidden', 'approver must not be the key of the executor itself');
    if (!verifySignature(approver, text, signature))
      refuse('forbidden', 'signature is not the signature of approver over this statement');
    return { approver, text, signature, passkey: null };
  }

  /** @throws ReveilleError `invalid_request` for an impossible one */
  function newPasskey(request: PasskeyRequest) {
    const { passkey } = request;
    const problem = originProblem(passkey);
    if (problem !== undefined) refuse('invalid_request', `passkey.${problem}`);
    const text = passkeyEnrollmentText({ ...request, user: ownerOf(request.user) });
    return { approver: passkeyId(passkey), text, signature: '', passkey: canonicalJson(passkey) };
  }

  /** @throws ReveilleError `conflict` for one that is or was enrolled, `rate_limited` */
  function refuseKnown(known: readonly CheckedRow[], approver: string): void {
    const lastSeq = known.find(({ row }) => row.publicKey === approver)?.row;
    if (lastSeq?.revokedAt !== undefined)
      refuse('conflict', `${approver} was revoked for ${lastSeq.user} and cannot be enrolled again; use a new key`);
    if (lastSeq) refuse('conflict', `${approver} is already an approver of ${lastSeq.user}`);
    if (known.length < APPROVERS_PER_USER) return;
    const message = `${known[0]!.row.user} has had ${APPROVERS_PER_USER} approvers, which is the limit`;
    refuse('rate_limited', message);
  }

  const checkedRow = (user: string, publicKey: string) => rows(user).find(({ row }) => row.publicKey === publicKey);

  return {
    /** The active approver of this user with this key or passkey id; `undefined` for any other. */
    activeApprover(user: string, approver: string): ActiveApprover | undefined {
      const row = activeOf(user).find((one) => one.row.publicKey === approver)?.row;
      return row && { name: row.name, ...(row.passkey && { passkey: row.passkey }) };
    },

    passkeys: (user: string): OfferedPasskey[] => activeOf(ownerOf(user)).flatMap(({ row }) => offered(row)),

    /** Stores the signature counter of an accepted answer, in the transaction that records the answer. */
    recordUse: (user: string, approver: string, { authenticator_data }: Assertion): void =>
      void count.run(signCountOf(authenticator_data), user, approver),

    /** In order of enrolment, including revoked ones. @param user all users by default */
    list(user?: string): ApproverView[] {
      const owners = user === undefined ? users() : [ownerOf(user)];
      return [...owners].flatMap((each) => rows(each).map(viewOf));
    },

    resets(user?: string): RosterReset[] {
      const found = user === undefined ? allResets.all() : resetsOf.all(ownerOf(user));
      return found.map(({ user_id, at }) => ({ user: user_id as string, at: formatInstant(at as number) }));
    },

    /**
     * @throws ReveilleError `conflict` for a key that was enrolled before or a statement for another executor,
     *   `forbidden` without a required signature, `invalid_request` for an impossible passkey, `rate_limited`
     */
    enroll: (request: ApproverRequest | PasskeyRequest): ApproverView =>
      writes.runNow(() => {
        const now = clock.now();
        const user = ownerOf(request.user);
        requireThisExecutor(request.executor);
        checkExpiry(request.expires_at, now);
        const { approver, text, signature, passkey } = 'passkey' in request ? newPasskey(request) : newKey(request);
        const known = rows(user);
        refuseKnown(known, approver);
        const lastReset = resetsOf.all(user).reduce((seq, { after_seq }) => Math.max(seq, after_seq as number), 0);
        const isFirst = !known.some(({ row, isGenuine }) => isGenuine && row.seq > lastReset);
        if (isFirst && passkey !== null)
          refuse(
            'forbidden',
            `a passkey cannot be the first approver of ${user}: enrol a key with "reveille approver enroll"`,
          );
        const needsNoVoucher =
          isFirst && (enrollment === 'operator' || ![...users()].some((one) => activeOf(one).length > 0));
        const { name, expires_at, voucher } = request;
        if (!needsNoVoucher) requireVoucher(isFirst ? undefined : user, text, voucher);
        const by = needsNoVoucher ? undefined : voucher!;
        const signed = [signature, by?.approver ?? null, by?.signature ?? null] as const;
        insert.run(user, approver, name, now, expires_at, ...signed, passkey);
        return viewOf(checkedRow(user, approver)!);
      }),

    /**
     * @throws ReveilleError `not_found`, `forbidden` without the signature of an active key, `conflict` for the last
     *   active key
     */
    revoke: (request: RevocationRequest): ApproverView =>
      writes.runNow(() => {
        const now = clock.now();
        const user = ownerOf(request.user);
        const { approver, expires_at, voucher } = request;
        requireThisExecutor(request.executor);
        checkExpiry(expires_at, now);
        const found = checkedRow(user, approver);
        if (!found) refuse('not_found', `${approver} is not an approver of ${user}`);
        if (found.row.revokedAt !== undefined) return viewOf(found);
        requireVoucher(user, revocationText({ ...request, user }), voucher);
        const keys = activeOf(user).filter(({ row }) => !row.passkey);
        if (keys.length === 1 && keys[0]!.row.publicKey === approver) {
          const message = `${approver} is the last key of ${user}: enrol another key first, or let the operator stop the executor and run "reveille approver reset --user ${user}"`;
          refuse('conflict', message);
        }
        revokeOne.run(now, voucher.approver, user, approver);
        return viewOf(checkedRow(user, approver)!);
      }),

    /**
     * Resets a user's roster: active approvers are revoked, and the next key is a first key again. @returns the number
     * of revoked approvers
     */
    reset: (user: string): number =>
      writes.runNow(() => {
        const owner = ownerOf(user);
        const now = clock.now();
        const { changes } = revokeAll.run(now, OPERATOR, owner);
        insertReset.run(owner, now, owner);
        return Number(changes);
      }),
  };
}
