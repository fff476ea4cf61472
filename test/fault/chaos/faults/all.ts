/** All faults, in the order of the table. */
import type { Fault } from '../fault.ts';
import { clock } from './clock.ts';
import { disk } from './disk.ts';
import { failover } from './failover.ts';
import { kill } from './kill.ts';
import { links } from './links.ts';
import { liveness } from './liveness.ts';
import { mixed } from './mixed.ts';
import { primariesOfHosts, primariesOfProxy } from './patroni.ts';
import { postgres } from './postgres.ts';
import { stop } from './stop.ts';
import { targets } from './targets.ts';
import { workers } from './workers.ts';

export const FAULTS: readonly Fault[] = [
  kill,
  stop,
  liveness,
  postgres,
  failover,
  links,
  targets,
  clock,
  disk,
  mixed,
  primariesOfHosts,
  primariesOfProxy,
  workers,
];
