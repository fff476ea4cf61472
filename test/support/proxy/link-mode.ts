/** The faults that a network link can have. */

/** The direction of bytes: from the connecting client towards the server, or back. */
export type Direction = 'there' | 'back';

export type LinkMode =
  | { kind: 'pass' }
  /** Every byte, and every close, arrives this much later. */
  | { kind: 'delay'; ms: number }
  /** Nothing arrives, and nothing is lost: data waits until the mode changes, because TCP sends it again. */
  | { kind: 'stall' }
  /** Bytes and closes of both directions are lost; connections stay open, new ones are accepted without a server. */
  | { kind: 'drop' }
  /**
   * One direction is dead. `there`: requests are lost. `back`: requests arrive, answers are lost. `peer`: the server
   * disappears without notice; its connections are reset, and the client notices nothing.
   */
  | { kind: 'half-open'; dead: Direction | 'peer' }
  /** Every connection is reset (RST), new ones as soon as they are made. */
  | { kind: 'reset' };

export const PASS: LinkMode = { kind: 'pass' };

/** Whether a link in this mode loses data in this direction. */
export function loses(mode: LinkMode, way: Direction): boolean {
  if (mode.kind === 'half-open') return mode.dead === 'peer' || mode.dead === way;
  return mode.kind === 'drop';
}

/** The mode in a word or two. */
export function nameOf(mode: LinkMode): string {
  if (mode.kind === 'delay') return `delay ${mode.ms} ms`;
  return mode.kind === 'half-open' ? `half-open (${mode.dead})` : mode.kind;
}
