/** The faults that a network link can have. */

/** The direction of bytes: from the connecting client towards the server, or back. */
export type Way = 'there' | 'back';

export type LinkMode =
  | { kind: 'pass' }
  /** Every byte, and every closing, arrives this much later. */
  | { kind: 'delay'; ms: number }
  /** Nothing arrives, and nothing is lost: what is sent waits until the link is otherwise, as TCP repeats it. */
  | { kind: 'stall' }
  /** Bytes and closings of both ways vanish; connections stay open, new ones are accepted and led nowhere. */
  | { kind: 'drop' }
  /**
   * One way is dead. `there`: requests vanish. `back`: requests arrive, answers vanish. `peer`: the server has gone
   * without saying so; it sees its connections cut, whoever connected sees nothing at all.
   */
  | { kind: 'half-open'; dead: Way | 'peer' }
  /** Every connection is reset (RST), new ones as soon as they are made. */
  | { kind: 'reset' };

export const PASS: LinkMode = { kind: 'pass' };

/** Whether a link in this mode loses data in this direction. */
export function loses(mode: LinkMode, way: Way): boolean {
  if (mode.kind === 'half-open') return mode.dead === 'peer' || mode.dead === way;
  return mode.kind === 'drop';
}

/** The mode in a word or two. */
export function nameOf(mode: LinkMode): string {
  if (mode.kind === 'delay') return `delay ${mode.ms} ms`;
  return mode.kind === 'half-open' ? `half-open (${mode.dead})` : mode.kind;
}
