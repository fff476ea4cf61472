/** The schedulers that others make, each in its default setting and in the best that its documentation allows. */
import { join } from 'node:path';
import { BENCH_FOLDER, type Workbench } from '../workbench.ts';
import type { Installation, Running, System } from './system.ts';

type Setting = 'default' | 'best';
type Peer = { program: string; version: string; settings: Record<Setting, string> };

export const PEERS: readonly Peer[] = [
  {
    program: 'graphile-worker',
    version: '0.18.0',
    settings: { default: '', best: '' },
  },
  {
    program: 'pg-boss',
    version: '12.20.0',
    settings: { default: '', best: '' },
  },
];
