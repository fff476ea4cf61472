/**
 * The spellings of "not given" that models and strict clients write, in every field of every tool and of every page of
 * help, over both servers. The cells follow from the schemas, so that a new field has its row.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, describe, type TestContext, test } from 'node:test';
import { parseChronosConfig } from '../../../src/chronos/config.ts';
import { startChronos } from '../../../src/chronos/daemon.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { atEnd, listening, type Owner, sharedOwner, temporaryFolder } from '../../support/temporary.ts';
import { makeAgentFiles } from '../chronos-mcp/agent-files.ts';
import { spawnMcp } from '../chronos-mcp/mcp-process.ts';
import { startMcpHttp } from '../mcp-http/mcp-http-bench.ts';

type Args = Record<string, unknown>;
type Answer = { isError?: boolean; structuredContent: Args };
type Schema = {
  properties: Record<string, { type: string; description: string; enum?: string[] }>;
  required?: string[];
};
type Server = {
  readonly schemas: Readonly<Record<string, Schema>>;
  call(tool: string, args: Args): Promise<Answer>;
};

const SPELLINGS: readonly unknown[] = [null, '', 'null', 'none', 'undefined', [], {}];
/** How the answer to a call with the spelling differs from the one without the field. */
type Cell = 'not given' | 'refused' | 'taken';

/** Fields in which a word that spells a missing value is a text like any other. */
const TEXTS = new Set(['wake_message', 'label', 'text', 'payload']);

/** The cells that do not follow from the kind of their field. */
const OTHERS: Readonly<Record<string, Cell>> = {
  'payload "null"': 'not given',
  'payload []': 'taken',
  'payload {}': 'taken',
  'clear []': 'not given',
  'more {}': 'not given',
  // Of strict clients, which send every argument.
  'action "none"': 'not given',
  'help "none"': 'not given',
  'catch_up "none"': 'taken',
  // No channels.
  'deliver []': 'taken',
};

function expected(field: string, spelling: unknown, isRequired: boolean): Cell {
  const written = JSON.stringify(spelling);
  if (spelling === null || spelling === '') return isRequired ? 'refused' : 'not given';
  return OTHERS[`${field} ${written}`] ?? (typeof spelling === 'string' && TEXTS.has(field) ? 'taken' : 'refused');
}

/** The chronosd of one agent, over `reveille mcp`. */
async function overStdio(owner: Owner): Promise<Server> {
  const router = await listening(
    owner,
    createServer((_, response) => response.writeHead(202).end('{"ok":true,"data":{}}')),
  );
  const token = 'transport-token-of-this-test';
  const chronos = await startChronos({
    ...{ clock: systemClock, log: silentLogger },
    config: parseChronosConfig({
      ...{ CHRONOS_PORT: '0', CHRONOS_DATA_DIR: temporaryFolder(owner), CHRONOS_TOKEN: token, CHRONOS_DEV: '1' },
      ...{ CHRONOS_AGENT_AUTH_SECRET: 'auth-secret-of-this-test', CHRONOS_WAKE_TOKEN: 'wake-token-of-this-test' },
      ...{ CHRONOS_ROUTER_WAKE_URL: `${router}/internal/wake`, CHRONOS_CHALLENGES_PER_MINUTE: '100000' },
      ...{ CHRONOS_CHALLENGES_PER_MINUTE_IN_ALL: '100000', CHRONOS_CREATES_PER_MINUTE: '100000' },
    }),
  });
  atEnd(owner, () => chronos.close());
  const agent = makeAgentFiles();
  atEnd(owner, () => agent.remove());
  const mcp = spawnMcp(agent.envFor({ url: chronos.url, token }));
  atEnd(owner, () => mcp.end());
  await mcp.initialize();
  const { answer } = await mcp.request('tools/list', '{}');
  return {
    schemas: schemasOf(answer.result.tools),
    call: async (name, args) =>
      (await mcp.request('tools/call', JSON.stringify({ name, arguments: args }))).answer.result,
  };
}

/** The chronosd of several users, over HTTP. */
async function overHttp(owner: Owner): Promise<Server> {
  const bench = await startMcpHttp(owner, { ROUTER_PUBLIC_REQUESTS_PER_MINUTE: '100000' });
  const bearer = await bench.token();
  const listed = (await bench.call('tools/list', {}, { bearer })).json() as { result: { tools: never[] } };
  return {
    schemas: schemasOf(listed.result.tools),
    call: (name, args) => bench.tool(name, args, bearer),
  };
}

const schemasOf = (tools: readonly { name: string; inputSchema: Schema }[]) =>
  Object.fromEntries(tools.map(({ name, inputSchema }) => [name, inputSchema]));

/** A call with a field, compared with the call without it. */
type Trial = { tool: string; field: string; isRequired: boolean; with(value: unknown): Promise<Args> };

/** What an alarm has, without what differs between two equal ones. */
async function fieldsOf({ call }: Server, id: unknown): Promise<Args> {
  const { isError, structuredContent } = await call('alarm_list', { alarm_id: id, full: true });
  assert.ok(!isError, JSON.stringify(structuredContent));
  const [alarm] = structuredContent.alarms as Args[];
  const { id: _, created_at, updated_at, next_fire_at, ...fields } = alarm!;
  return fields;
}

/** The outcome of a call: what is then stored, or what is listed. */
async function outcomeOf(server: Server, tool: string, args: Args): Promise<Args> {
  const { isError, structuredContent } = await server.call(tool, args);
  if (isError) return { error: structuredContent.message };
  return structuredContent.id === undefined ? structuredContent : fieldsOf(server, structuredContent.id);
}

async function trialsOf(server: Server): Promise<Trial[]> {
  const set = (fields: Args) => outcomeOf(server, 'alarm_set', fields);
  const create = async (fields: Args) => (await server.call('alarm_set', fields)).structuredContent.id;
  const daily = { wake_message: 'x', when: 'every day at 9:00 UTC' };
  const later = { wake_message: 'x', fire_at: new Date(Date.now() + 30 * 86_400_000).toISOString() };
  const { alarm_set, alarm_list, alarm_cancel } = server.schemas;
  /** Gives the field, or leaves it out. */
  const trial = (tool: string, field: string, isRequired: boolean, call: (given: Args) => Promise<Args>): Trial => ({
    ...{ tool, field, isRequired },
    with: (value) => call(value === undefined ? {} : { [field]: value }),
  });
  const trials: Trial[] = [];
  for (const field of Object.keys(alarm_set!.properties)) {
    const { [field]: _, ...others }: Args = field === 'when' ? later : daily;
    trials.push(trial('alarm_set', field, field === 'wake_message', (given) => set({ ...others, ...given })));
    if (field === 'alarm_id') continue;
    const changed = field === 'label' ? { wake_message: 'y' } : { label: 'y' };
    const edit = async (given: Args) => set({ alarm_id: await create(daily), ...changed, ...given });
    trials.push(trial('alarm_set with alarm_id', field, false, edit));
  }
  const topics = alarm_set!.properties.help!.description.matchAll(/\b([a-z]+): /g);
  for (const [, help] of topics) {
    const { structuredContent } = await server.call('alarm_set', { help });
    for (const field of Object.keys(structuredContent.fields as Args)) {
      const inMore = (given: Args) => set({ ...daily, more: JSON.stringify(given) });
      trials.push(trial('alarm_set: more', field, false, inMore));
    }
  }
  for (const field of Object.keys(alarm_list!.properties))
    trials.push(trial('alarm_list', field, false, (given) => outcomeOf(server, 'alarm_list', given)));
  for (const field of alarm_cancel!.required!)
    trials.push(trial('alarm_cancel', field, true, (given) => outcomeOf(server, 'alarm_cancel', given)));
  return trials;
}

async function examine(t: TestContext, server: Server): Promise<void> {
  const row = (cells: readonly string[]) =>
    t.diagnostic(cells.map((cell, at) => cell.padEnd(at < 2 ? 24 : 10)).join(' '));
  row(['tool', 'field', 'absent', ...SPELLINGS.map((spelling) => JSON.stringify(spelling))]);
  const wrong: string[] = [];
  for (const { tool, field, isRequired, with: calling } of await trialsOf(server)) {
    const without = await calling(undefined);
    const cells: Cell[] = [without.error === undefined ? 'not given' : 'refused'];
    for (const spelling of SPELLINGS) {
      const outcome = await calling(spelling);
      const cell = outcome.error !== undefined ? 'refused' : isSame(outcome, without) ? 'not given' : 'taken';
      cells.push(cell);
      const where = `${tool}: ${field} ${JSON.stringify(spelling)}`;
      const right = expected(field, spelling, isRequired);
      if (cell !== right) wrong.push(`${where} is ${cell} instead of ${right}: ${outcome.error ?? ''}`);
      // The model needs the name to correct its call.
      if (cell === 'refused' && !String(outcome.error).includes(field)) wrong.push(`${where}: ${outcome.error}`);
    }
    row([tool, field, ...cells]);
  }
  assert.deepEqual(wrong, []);
}

function isSame(one: Args, other: Args): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

describe('what a model or a client writes for a field that it does not give', () => {
  const owner = sharedOwner();
  after(() => owner.end());
  test('over reveille mcp', async (t) => examine(t, await overStdio(owner)));
  test('over HTTP', async (t) => examine(t, await overHttp(owner)));
});
