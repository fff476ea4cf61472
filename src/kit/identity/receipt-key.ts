/** The key with which a machine signs its receipts. */
import { createHmac } from 'node:crypto';

/**
 * Derives it from the machine's token: whoever checks receipts can do so without knowing the token, and cannot pass for the router
 * towards the machine's daemon.
 *
 * @returns 64 hex digits; the HMAC key of the signatures is this text
 */
export function receiptKey(machineToken: string): string {
  return createHmac('sha256', machineToken).update('reveille receipts').digest('hex');
}
