/** macOS: the HID system of the kernel, read from the I/O registry. */
import { ReveilleError } from '../../wire/errors.ts';
import type { IdleHost, IdleProbe } from './idle.ts';

const IOREG = '/usr/sbin/ioreg';

export function macosProbe(host: IdleHost): IdleProbe {
  const name = 'macos';
  return {
    name,
    async read(signal) {
      // Only the node, without its parents and children; lines in full.
      const output = await host.run(IOREG, ['-c', 'IOHIDSystem', '-r', '-d', '1', '-w', '0'], signal);
      return { idleMs: idleOfIoreg(output), source: name };
    },
  };
}

/**
 * The line `"HIDIdleTime" = 1234567890`, in nanoseconds. With several nodes, the most recent input counts.
 *
 * @returns milliseconds
 */
export function idleOfIoreg(output: string): number {
  const found = [...output.matchAll(/^[ |]*"HIDIdleTime" = (\d{1,20})\n/gm)];
  if (found.length === 0) throw new ReveilleError('unavailable', 'its answer has no HIDIdleTime in nanoseconds');
  return Math.min(...found.map(([, digits]) => Number(BigInt(digits!) / 1_000_000n)));
}
