/**
 * Cost of Chronometric: from process start to the first answer, and a call of each tool, compared with a server of the
 * MCP library alone.
 */
import { join } from 'node:path';
import type { Child } from '../children.ts';
import { rotated } from '../plan.ts';
import { median, percentile } from '../statistics.ts';
import { BENCH_FOLDER, type Workbench } from '../workbench.ts';
import type { Context } from './context.ts';

/** From process start to its answers, milliseconds. */
export type ChronometricStart = {
  way: ChronometricWay;
  title: string;
  /** Time to the end of the handshake, and to the first answer of a tool. */
  handshake: number;
  answer: number;
  /** `answer` of each start. */
  rounds: number[];
};

/** Calls of one tool, milliseconds. */
export type ChronometricCalls = {
  way: ChronometricWay;
  title: string;
  tool: string;
  p50: number;
  p99: number;
  rounds: { p50: number; p99: number }[];
};

export type ChronometricResult = { starts: ChronometricStart[]; calls: ChronometricCalls[] };

/** In an order in which each of them has work to do. */
const CALLS: readonly { tool: string; args: object }[] = [
  { tool: 'get_time_context', args: {} },
  { tool: 'mark_session_start', args: { intent: 'measure the duration of a call' } },
  { tool: 'request_break_if_needed', args: { threshold_minutes: 45 } },
  { tool: 'idle_status', args: {} },
  { tool: 'mark_session_end', args: { summary: 'measured' } },
];
const WARMUP_ROUNDS = 50;

const WAYS = [
  {
    way: 'reveille',
    title: '`reveille chronometric`',
    command: [join(BENCH_FOLDER, '..', 'bin', 'reveille.mjs'), 'chronometric'],
  },
  {
    way: 'sdk',
    title: 'bare SDK server',
    command: [join(BENCH_FOLDER, 'hands', 'bare-server.ts'), ...CALLS.map(({ tool }) => tool)],
  },
] as const;
type ChronometricWay = (typeof WAYS)[number]['way'];
type Way = (typeof WAYS)[number];

/** A started server, called line by line: a client of the library would be part of the measurement. */
class Server {
  readonly #child: Child;
  #lastId = 0;

  constructor(bench: Workbench, { way, command }: Way) {
    // A returning user: the state exists, a profile does not.
    const home = join(bench.folder, 'person');
    this.#child = bench.start(`chronometric ${way}`, command, {
      HOME: home,
      REVEILLE_HOME: join(home, '.reveille'),
      NODE_COMPILE_CACHE: join(bench.folder, 'compile-cache'),
    });
  }

  #write(message: object): void {
    this.#child.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  async #request(method: string, params: object): Promise<void> {
    this.#write({ id: ++this.#lastId, method, params });
    const { result } = await this.#child.says<{ result?: { isError?: boolean } }>();
    if (result === undefined || result.isError) throw new Error(`${method} failed:\n${this.#child.logged()}`);
  }

  async shakeHands(): Promise<void> {
    const clientInfo = { name: 'bench', version: '0' };
    await this.#request('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
    this.#write({ method: 'notifications/initialized' });
  }

  call(tool: string, args: object): Promise<void> {
    return this.#request('tools/call', { name: tool, arguments: args });
  }

  end(): Promise<void> {
    return this.#child.stop();
  }
}

async function timeStart(bench: Workbench, way: Way): Promise<{ handshake: number; answer: number }> {
  const startedAt = performance.now();
  const server = new Server(bench, way);
  await server.shakeHands();
  const handshake = performance.now() - startedAt;
  await server.call('get_time_context', {});
  const answer = performance.now() - startedAt;
  await server.end();
  return { handshake, answer };
}

async function measureStarts({ bench, plan, progress }: Context): Promise<ChronometricStart[]> {
  progress.step('chronometric: process start to first answer');
  // The first start of each fills the compile cache and creates the state.
  for (const way of WAYS) await timeStart(bench, way);
  const found = WAYS.map((way) => ({ way, times: [] as { handshake: number; answer: number }[] }));
  for (let start = 0; start < plan.chronometric.starts; start++)
    for (const { way, times } of rotated(found, start)) times.push(await timeStart(bench, way));
  return found.map(({ way: { way, title }, times }) => ({
    ...{ way, title },
    handshake: median(times.map(({ handshake }) => handshake))!,
    answer: median(times.map(({ answer }) => answer))!,
    rounds: times.map(({ answer }) => answer),
  }));
}

type CallTimes = ReadonlyMap<string, { p50: number; p99: number }>;

/** Calls the tools in turn, one call at a time. */
async function timeCalls(bench: Workbench, way: Way, calls: number): Promise<CallTimes> {
  const times = new Map<string, number[]>(CALLS.map(({ tool }) => [tool, []]));
  const server = new Server(bench, way);
  await server.shakeHands();
  for (let round = -WARMUP_ROUNDS; round < calls; round++) {
    for (const { tool, args } of CALLS) {
      const startedAt = performance.now();
      await server.call(tool, args);
      if (round >= 0) times.get(tool)!.push(performance.now() - startedAt);
    }
  }
  await server.end();
  return new Map(
    [...times].map(([tool, all]) => {
      const sorted = Float64Array.from(all).sort();
      return [tool, { p50: percentile(sorted, 0.5)!, p99: percentile(sorted, 0.99)! }];
    }),
  );
}

async function measureCalls({ bench, plan, progress }: Context): Promise<ChronometricCalls[]> {
  const found = WAYS.map((way) => ({ way, rounds: [] as CallTimes[] }));
  for (let round = 0; round < plan.rounds; round++) {
    progress.step(`chronometric: calls, round ${round + 1} of ${plan.rounds}`);
    for (const { way, rounds } of rotated(found, round))
      rounds.push(await timeCalls(bench, way, plan.chronometric.calls));
  }
  return CALLS.flatMap(({ tool }) =>
    found.map(({ way: { way, title }, rounds: all }) => {
      const rounds = all.map((round) => round.get(tool)!);
      const p50 = median(rounds.map((round) => round.p50))!;
      const p99 = median(rounds.map((round) => round.p99))!;
      return { ...{ way, title, tool, p50, p99 }, rounds };
    }),
  );
}

/** The state is on the same disk as the databases of the other workloads. */
export async function measureChronometric(context: Context): Promise<ChronometricResult> {
  return { starts: await measureStarts(context), calls: await measureCalls(context) };
}
