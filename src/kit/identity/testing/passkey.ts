/** Passkeys for tests: an authenticator and its browser, as far as signatures depend on them. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, type KeyObject, sign } from 'node:crypto';
import { answerText } from '../../../wire/approver.ts';
import type { GateAnswer } from '../../../wire/executor.ts';
import { type Assertion, type Passkey, type PasskeyRequest, passkeyEnrollmentText } from '../../../wire/passkey.ts';
import { formatInstant } from '../../../wire/rfc3339.ts';
import type { AgentKey } from '../keys.ts';
import { challengeOf, passkeyId } from '../passkey.ts';
import type { AskedGate } from './approver.ts';

const MINUTE_MS = 60_000;

/** Deviations from a valid assertion. */
export type Oddity = {
  readonly type?: string;
  readonly challenge?: string;
  readonly origin?: string;
  /** The RP ID in the authenticator's data. */
  readonly rpId?: string;
  /** Default: UP and UV. */
  readonly flags?: number;
  readonly count?: number;
  /** Additional members of the client data. */
  readonly more?: object;
  /** Changes to both before they are signed. */
  readonly clientData?: (text: string) => string;
  readonly data?: (bytes: Buffer) => Buffer;
};

const NEW_KEYS = {
  es256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  eddsa: () => generateKeyPairSync('ed25519').privateKey,
  rs256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
};
export type PasskeyAlgorithm = keyof typeof NEW_KEYS;

/** @param given.key a private key in PKCS#8 PEM; by default a new one of `algorithm` */
export function testPasskey(
  given: {
    algorithm?: PasskeyAlgorithm;
    key?: string;
    credentialId?: string;
    origin?: string;
    now?: () => number;
  } = {},
) {
  const { algorithm = 'es256', origin = 'http://localhost:8087', now = Date.now } = given;
  const key: KeyObject = given.key === undefined ? NEW_KEYS[algorithm]() : createPrivateKey(given.key);
  const public_key = createPublicKey(key).export({ format: 'der', type: 'spki' }).toString('hex');
  const credential_id = given.credentialId ?? hash('sha256', public_key).slice(0, 32);
  const passkey: Passkey = { credential_id, origin, public_key, rp_id: new URL(origin).hostname };
  const approver = passkeyId(passkey);
  const soon = () => formatInstant(now() + 10 * MINUTE_MS);
  let counter = 0;

  /** The assertion of a browser and an authenticator for a text. */
  function assertion(text: string, fault: Oddity = {}): Assertion {
    const valid = { type: 'webauthn.get', challenge: challengeOf(text), origin, crossOrigin: false };
    const { type = valid.type, challenge = valid.challenge, rpId = passkey.rp_id, flags = 0x05, more } = fault;
    const { clientData = (all: string) => all, data: change = (all: Buffer) => all } = fault;
    const client_data = clientData(
      JSON.stringify({ ...valid, type, challenge, origin: fault.origin ?? origin, ...more }),
    );
    const counterBytes = Buffer.alloc(4);
    counter = fault.count ?? counter + 1;
    counterBytes.writeUInt32BE(counter);
    const data = change(Buffer.concat([hash('sha256', rpId, 'buffer'), Buffer.of(flags), counterBytes]));
    const signed = Buffer.concat([data, hash('sha256', client_data, 'buffer')]);
    const signature = sign(key.asymmetricKeyType === 'ed25519' ? null : 'sha256', signed, key).toString('hex');
    return { authenticator_data: data.toString('hex'), client_data, signature };
  }

  /** The browser's answer to the creation of the passkey. @param challenge in base64url */
  function registration(challenge: string, fault: Oddity = {}) {
    const id = Buffer.from(credential_id, 'hex');
    const length = Buffer.of(id.length >> 8, id.length & 0xff);
    // The authenticator's model, which is not checked, and the key, which is returned separately.
    const data = (head: Buffer) => Buffer.concat([head, Buffer.alloc(16), length, id, Buffer.alloc(77)]);
    const made = { type: 'webauthn.create', challenge, flags: 0x45, data, count: 0, ...fault };
    const { authenticator_data, client_data } = assertion('', made);
    return { authenticator_data, client_data };
  }

  return {
    passkey,
    approver,
    assertion,
    registration,

    /** A signed answer to a gate; `changes` may contradict the signed statement. */
    answer(intentId: string, gate: AskedGate, changes: Partial<GateAnswer> = {}, fault: Oddity = {}): GateAnswer {
      const { node_id, call, displayed_sha256 } = gate;
      const statement = {
        ...{ approved: true, call_sha256: call.call_sha256, displayed_sha256, expires_at: soon() },
        ...changes,
      };
      const signed = assertion(answerText({ ...statement, intent_id: intentId, node_id }), fault);
      return { ...statement, approver, passkey: signed, ...changes };
    },

    /** The request that enrols the passkey, signed by an enrolled key. */
    enrollment(executor: string, user: string, by?: AgentKey): PasskeyRequest {
      const statement = { passkey, name: `${user}'s passkey`, user, executor, expires_at: soon() };
      if (!by) return statement;
      const signature = by.sign(passkeyEnrollmentText(statement));
      return { ...statement, voucher: { approver: by.publicKeyHex, signature } };
    },
  };
}

const MEMBERS = ['authenticator_data', 'client_data', 'signature'] as const;
const OTHERS = '0123456789abcdef"{},:';

/** An assertion with one changed character. */
export function changedAssertion(assertion: Assertion, dice: (sides: number) => number): Assertion {
  const name = MEMBERS[dice(MEMBERS.length)]!;
  const text = assertion[name];
  const at = dice(text.length);
  // Binary values get another hex digit, so that only the signature check can detect the change.
  const others = name === 'client_data' ? OTHERS : OTHERS.slice(0, 16);
  const other = [...others].filter((one) => one !== text[at]);
  return { ...assertion, [name]: text.slice(0, at) + other[dice(other.length)]! + text.slice(at + 1) };
}
