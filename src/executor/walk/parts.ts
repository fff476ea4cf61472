/** What the rail is made of. */
import type { Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { Compiler } from '../compile/compiler.ts';
import type { Journal } from '../journal/journal.ts';
import type { Policy } from '../policy/policy.ts';
import type { Toolbox } from '../tools/toolbox.ts';

export type RailParts = {
  readonly journal: Journal;
  readonly toolbox: Toolbox;
  readonly policy: Policy;
  readonly compiler: Compiler;
  readonly clock: Clock;
  readonly log: Logger;
  /** How long the tools are asked what became of a call whose answer got lost; 60 seconds unless told. */
  readonly reconcileMs?: number;
  /** Whether agents can be woken; where they cannot, nothing is parked, so that none ends its turn waiting for an alarm. They can unless told. */
  readonly canWake?: boolean;
};
