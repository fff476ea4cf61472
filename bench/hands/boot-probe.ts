/**
 * How long tools take to be ready: loads what is needed, starts the servers and lists their tools one way, says how
 * long that took, and ends everything. A process of its own, because loading the code is part of it.
 */
import type { DeclaredServers } from './servers.ts';

export type BootWay = 'surface' | 'sdk-in-turn' | 'sdk-side-by-side';

/** What the program is told, as JSON, and what it answers. */
export type BootOrder = { way: BootWay; servers: DeclaredServers };
export type BootAnswer = { milliseconds: number };

type Ready = { tools: number; close(): Promise<unknown> };

async function bareClient(command: DeclaredServers['commands'][number]): Promise<Ready> {
  const { connectBare } = await import('./bare-client.ts');
  const client = await connectBare(command);
  const { tools } = await client.listTools();
  return { tools: tools.length, close: () => client.close() };
}

const together = (ready: readonly Ready[]): Ready => ({
  tools: ready.reduce((sum, { tools }) => sum + tools, 0),
  close: () => Promise.all(ready.map((each) => each.close())),
});

const WAYS: { [Way in BootWay]: (servers: DeclaredServers) => Promise<Ready> } = {
  async surface(servers) {
    const { startSurface } = await import('./neo-tools.ts');
    const surface = await startSurface(servers);
    return { tools: surface.schemas().length, close: () => surface.close() };
  },
  async 'sdk-in-turn'({ commands }) {
    const ready: Ready[] = [];
    for (const command of commands) ready.push(await bareClient(command));
    return together(ready);
  },
  'sdk-side-by-side': async ({ commands }) => together(await Promise.all(commands.map(bareClient))),
};

const { way, servers } = JSON.parse(process.argv[2]!) as BootOrder;
const startedAt = performance.now();
const ready = await WAYS[way](servers);
const answer: BootAnswer = { milliseconds: performance.now() - startedAt };
await ready.close();
// A server that failed would make the start look fast.
if (ready.tools !== servers.tools) throw new Error(`${ready.tools} tools are ready, not ${servers.tools}`);
process.stdout.write(`${JSON.stringify(answer)}\n`);
