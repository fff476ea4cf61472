/**
 * Duration until tools are ready: loads the code, starts the servers and lists their tools in one of the compared ways.
 * Prints the duration and ends everything. It is its own process, because loading the code is part of the duration.
 */
import type { DeclaredServers } from './servers.ts';

export type BootWay = 'surface' | 'sdk-in-turn' | 'sdk-side-by-side';

/** The program's argument, as JSON, and its output. */
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
// A failed server would make the start look fast.
if (ready.tools !== servers.tools) throw new Error(`${ready.tools} tools are ready, not ${servers.tools}`);
process.stdout.write(`${JSON.stringify(answer)}\n`);
