/** The whole matrix: `node test/system/executor/kill-matrix/main.ts [transfers]`, 500 by default. */
import { campaign } from './campaign.ts';
import { KILL_POINTS } from './kill-point.ts';

const transfers = Number(process.argv[2] ?? 500);
const began = performance.now();
const figures = await campaign(KILL_POINTS, Math.ceil(transfers / KILL_POINTS.length));
console.log(JSON.stringify({ ...figures, seconds: Math.round((performance.now() - began) / 100) / 10 }, null, 2));
