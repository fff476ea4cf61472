/**
 * Added latency of Neo's tool calls: the same calls through the MCP library alone, through the host, and through Neo.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testCall } from '../../src/agents/neo/testing/tool-call.ts';
import { randomFrom } from '../../test/support/random/random.ts';
import { connectBare } from '../hands/bare-client.ts';
import { startPool, startSurface } from '../hands/neo-tools.ts';
import { aliasOf, type DeclaredServers, declareServers } from '../hands/servers.ts';
import { median, percentile } from '../statistics.ts';
import type { Context } from './context.ts';

/** Milliseconds. */
export type CallTime = { p50: number; p99: number };

export type ToolsRow = {
  way: WayName;
  title: string;
  call: CallName;
  /** Title of the result column. */
  callTitle: string;
  median: CallTime;
  /** The difference to the library alone in the same round. */
  added: CallTime;
  rounds: CallTime[];
};

type Call = { tool: string; args: Record<string, unknown> };
type Caller = { call(call: Call): Promise<{ isError?: boolean | undefined }>; close(): Promise<unknown> };

async function bareCaller({ commands }: DeclaredServers): Promise<Caller> {
  const client = await connectBare(commands[0]!);
  return {
    call: ({ tool, args }) => client.callTool({ name: tool, arguments: args }),
    close: () => client.close(),
  };
}

async function poolCaller(servers: DeclaredServers): Promise<Caller> {
  const pool = await startPool(servers);
  const { signal } = testCall();
  return { call: ({ tool, args }) => pool.call(aliasOf(0), tool, args, { signal }), close: () => pool.close() };
}

async function surfaceCaller(servers: DeclaredServers): Promise<Caller> {
  const surface = await startSurface(servers);
  const context = testCall();
  return {
    call: ({ tool, args }) => surface.dispatch(`${aliasOf(0)}__${tool}`, args, context),
    close: () => surface.close(),
  };
}

const WAYS = [
  { way: 'sdk', title: 'bare SDK client', open: bareCaller },
  // The difference between the two bare clients is the precision of the measurement.
  { way: 'sdk-again', title: 'another bare SDK client', open: bareCaller },
  { way: 'pool', title: 'MCP host, `ServerPool.call`', open: poolCaller },
  { way: 'surface', title: 'Neo, `ToolSurface.dispatch`', open: surfaceCaller },
] as const;
type WayName = (typeof WAYS)[number]['way'];

const LONG_BYTES = 64 * 1024;
const LINE = 'This line is only text of some length.\n';
const LONG_FILE = 'long.txt';

const CALLS = [
  { call: 'short', title: 'short', tool: 'list_allowed_directories', args: () => ({}) },
  {
    call: 'long',
    title: '64 KiB',
    tool: 'read_text_file',
    args: (workspace: string) => ({ path: join(workspace, LONG_FILE) }),
  },
] as const;
type CallName = (typeof CALLS)[number]['call'];

/** Warm-up calls of each kind through each client: code is compiled afterwards, in the servers as well. */
const WARMUP_CALLS = 300;

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, at: random() }))
    .sort((one, other) => one.at - other.at)
    .map(({ item }) => item);
}

type Opened = { way: WayName; caller: Caller };

/** The same call through every client, one at a time, in random order: a disturbance affects all of them. */
async function timeCalls(opened: readonly Opened[], call: Call, count: number, random: () => number) {
  const times = new Map(opened.map(({ way }) => [way, [] as number[]]));
  for (let done = -WARMUP_CALLS; done < count; done++) {
    for (const { way, caller } of shuffled(opened, random)) {
      const startedAt = performance.now();
      const { isError } = await caller.call(call);
      const took = performance.now() - startedAt;
      if (isError) throw new Error(`${call.tool} failed through ${way}`);
      if (done >= 0) times.get(way)!.push(took);
    }
  }
  return new Map(
    [...times].map(([way, all]): [WayName, CallTime] => {
      const sorted = Float64Array.from(all).sort();
      return [way, { p50: percentile(sorted, 0.5)!, p99: percentile(sorted, 0.99)! }];
    }),
  );
}

type Round = ReadonlyMap<CallName, ReadonlyMap<WayName, CallTime>>;

/** New servers in each round, one per client, so that no client has a faster server all the time. */
async function measureRound({ bench, plan }: Context, random: () => number): Promise<Round> {
  const servers = declareServers(bench.makeFolder('tools'), 1);
  writeFileSync(join(servers.workspace, LONG_FILE), LINE.repeat(Math.floor(LONG_BYTES / LINE.length)));
  const opened: Opened[] = [];
  const found = new Map<CallName, ReadonlyMap<WayName, CallTime>>();
  try {
    for (const { way, open } of WAYS)
      opened.push({ way, caller: await open({ ...servers, folder: bench.makeFolder(way) }) });
    for (const { call, tool, args } of CALLS) {
      found.set(call, await timeCalls(opened, { tool, args: args(servers.workspace) }, plan.tools.calls, random));
    }
    return found;
  } finally {
    await Promise.all(opened.map(({ caller }) => caller.close()));
  }
}

export async function measureTools(context: Context): Promise<ToolsRow[]> {
  const random = randomFrom(1);
  const rounds: Round[] = [];
  for (let round = 0; round < context.plan.rounds; round++) {
    context.progress.step(`tools: round ${round + 1} of ${context.plan.rounds}`);
    rounds.push(await measureRound(context, random));
  }
  return CALLS.flatMap(({ call, title: callTitle }) =>
    WAYS.map(({ way, title }): ToolsRow => {
      const own = rounds.map((round) => round.get(call)!.get(way)!);
      const bare = rounds.map((round) => round.get(call)!.get('sdk')!);
      const middle = (values: readonly number[]) => median(values)!;
      return {
        ...{ way, title, call, callTitle },
        median: { p50: middle(own.map(({ p50 }) => p50)), p99: middle(own.map(({ p99 }) => p99)) },
        added: {
          p50: middle(own.map(({ p50 }, round) => p50 - bare[round]!.p50)),
          p99: middle(own.map(({ p99 }, round) => p99 - bare[round]!.p99)),
        },
        rounds: own,
      };
    }),
  );
}
