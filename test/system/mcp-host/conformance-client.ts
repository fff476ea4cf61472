/**
 * The client that the MCP conformance suite drives: a pool with one server, each of whose tools is called once. It also
 * plays the person, who consents to every sign-in and accepts every question with its default values.
 * Argument: the server's address. `MCP_CONFORMANCE_CONTEXT` contains the inputs of the scenario.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { createLogger } from '../../../src/kit/log/log.ts';
import type { AskPerson } from '../../../src/mcp-host/elicitation.ts';
import { loadManifest } from '../../../src/mcp-host/manifest.ts';
import { beginSignIn, finishSignIn } from '../../../src/mcp-host/oauth/sign-in.ts';
import { TokenStore } from '../../../src/mcp-host/oauth/token-store.ts';
import { type HostedTool, ServerPool } from '../../../src/mcp-host/server-pool.ts';
import { checkContent } from '../../../src/wire/question.ts';
import { eventually } from '../../support/eventually.ts';

type WantedCall = { name: string; arguments?: Record<string, unknown> };

/** A value for each required argument of a tool. */
function sampleArguments({ tool, definition }: HostedTool, all: readonly HostedTool[]): Record<string, unknown> {
  const { properties = {}, required = [] } = definition.inputSchema as {
    properties?: Record<string, { type?: string }>;
    required?: string[];
  };
  const samples: Record<string, unknown> = { number: 1, integer: 1, string: 'x', boolean: true, array: [], object: {} };
  // One scenario expects the received schema of another tool.
  const schema = all.find((other) => other.tool !== tool)?.definition.inputSchema;
  return Object.fromEntries(
    required.map((name) => [name, name === 'schema' ? schema : samples[properties[name]?.type ?? 'string']]),
  );
}

const url = process.argv.at(-1)!;
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? '';
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}') as {
  toolCalls?: WantedCall[];
  client_id?: string;
  client_secret?: string;
  issuer?: string;
};
const dataDir = mkdtempSync(join(tmpdir(), 'reveille-conformance-'));

/** Accepts, with the default or a sample for each field. */
const accept: AskPerson = (question) => {
  if (question.mode === 'url') return Promise.resolve({ action: 'accept' });
  const samples = { text: 'x', number: 1, integer: 1, boolean: true, choice: undefined, choices: undefined };
  const open = question.fields.filter(({ required, default: given }) => required && given === undefined);
  const content = Object.fromEntries(
    open.map(({ name, kind, options }) => [name, samples[kind] ?? options![0]!.value]),
  );
  const checked = checkContent(question.fields, content);
  return Promise.resolve(
    'problems' in checked ? { action: 'decline' } : { action: 'accept', content: checked.content },
  );
};

const ownClient = context.client_id !== undefined && context.client_secret !== undefined;
const oauth = {
  client_metadata_url: 'https://conformance-test.local/client-metadata.json',
  ...(ownClient && {
    ...{ client_id: context.client_id, client_secret: `\${SUITE_SECRET}` },
    ...(context.issuer !== undefined && { issuer: context.issuer }),
    ...(scenario.startsWith('auth/client-credentials') && { grant: 'client_credentials' }),
  }),
};
try {
  const path = join(dataDir, 'agent.json');
  writeFileSync(path, JSON.stringify({ servers: [{ alias: 'suite', transport: 'http', url, oauth }] }));
  const manifest = loadManifest(path, { SUITE_SECRET: context.client_secret });
  const spec = manifest.servers[0]!;
  const link = spec.link.kind === 'http' && spec.link.oauth ? { ...spec.link, oauth: spec.link.oauth } : undefined;
  const store = new TokenStore(dataDir, systemClock);
  const pool = await ServerPool.start(manifest, {
    ...{ clock: systemClock, log: createLogger('suite'), dataDir, asksPerson: true },
  });

  let signIns = 0;
  /** Opens the address as a browser does, up to the redirect address. @returns whether the sign-in has succeeded */
  async function signIn(): Promise<boolean> {
    if (++signIns > 3) return false;
    try {
      const options = { spec, link: link!, store, clock: systemClock };
      const request = await beginSignIn(options, 'http://127.0.0.1:33418/callback');
      const answer = await fetch(request.url, { redirect: 'manual' });
      await finishSignIn(options, answer.headers.get('location') ?? '');
      return true;
    } catch (thrown) {
      console.error(String(thrown));
      return false;
    }
  }
  const isOut = () => pool.signedOut().length > 0;
  async function untilIn(): Promise<void> {
    while (isOut() && (await signIn()))
      await eventually('the server is ready', () => !isOut() || pool.servers()[0]!.state === 'ready', 4_000).catch(
        () => {},
      );
  }
  await untilIn();
  const wanted =
    context.toolCalls ??
    pool.tools().map((tool) => ({ name: tool.tool, arguments: sampleArguments(tool, pool.tools()) }));
  for (const call of wanted) {
    for (let again = true, tries = 0; again && tries < 3; tries++) {
      const outcome = await pool
        .call('suite', call.name, call.arguments ?? {}, { ask: accept })
        .catch((thrown: unknown) => String(thrown));
      const text = JSON.stringify(outcome);
      console.error(call.name, text);
      again = text.includes('needs sign-in') && (await signIn());
      if (again) await eventually('it is ready', () => pool.servers()[0]!.state === 'ready', 4_000).catch(() => {});
    }
  }
  await pool.close();
} finally {
  rmSync(dataDir, { recursive: true });
}
