/** The browser side of encrypted push messages, without a browser. */
import { createDecipheriv, createECDH, hkdfSync, randomBytes } from 'node:crypto';

/** A browser's side of a subscription: decrypts what its push service got (RFC 8188, RFC 8291). */
export function pushBrowser(endpoint: string) {
  const own = createECDH('prime256v1');
  const p256dh = own.generateKeys();
  const auth = randomBytes(16);
  const hkdf = (salt: Buffer, ikm: Buffer, info: Buffer, bytes: number) =>
    Buffer.from(hkdfSync('sha256', ikm, salt, info, bytes));
  return {
    subscription: {
      endpoint,
      keys: { p256dh: p256dh.toString('base64url'), auth: auth.toString('base64url') },
    },
    decrypt(body: Buffer): string {
      const salt = body.subarray(0, 16);
      const idBytes = body[20]!;
      const server = body.subarray(21, 21 + idBytes);
      const sealed = body.subarray(21 + idBytes);
      const keyInfo = Buffer.concat([Buffer.from('WebPush: info\0'), p256dh, server]);
      const ikm = hkdf(auth, own.computeSecret(server), keyInfo, 32);
      const key = hkdf(salt, ikm, Buffer.from('Content-Encoding: aes128gcm\0'), 16);
      const nonce = hkdf(salt, ikm, Buffer.from('Content-Encoding: nonce\0'), 12);
      const decipher = createDecipheriv('aes-128-gcm', key, nonce).setAuthTag(sealed.subarray(-16));
      const padded = Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()]);
      // One record: the text, and 2 at the end of the last record.
      return padded.subarray(0, padded.lastIndexOf(2)).toString('utf8');
    },
  };
}
