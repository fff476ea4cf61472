/** The shared parts of Neo's tests: a real daemon on a real port with a real file, and clients for it. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { eventually } from '../../../../test/support/eventually.ts';
import { temporaryFolder } from '../../../../test/support/temporary.ts';
import { systemClock } from '../../../kit/clock/clock.ts';
import { silentLogger } from '../../../kit/log/log.ts';
import type { ModelRequest } from '../../../kit/model/model.ts';
import type { Turn } from '../../../turns/turn.ts';
import { conversationViewSchema, type TurnView } from '../../../wire/turn.ts';
import { type ChatAccepted, chatAcceptedSchema } from '../../../wire/wake.ts';
import type { NeoConfig } from '../config.ts';
import type { ConversationStore } from '../conversations/store.ts';
import { type NeoOptions, type RunningNeo, startNeo } from '../daemon.ts';
import type { NeoModel } from '../model.ts';

export const TOKEN = 'a-token-for-the-tests';

export function testConfig(dataDir: string, config: Partial<NeoConfig> = {}): NeoConfig {
  return {
    host: '127.0.0.1',
    port: 0,
    dataDir,
    token: TOKEN,
    allowedHosts: [],
    model: { kind: 'offline' },
    contextTokens: 128_000,
    isolation: 'off',
    warnings: [],
    ...config,
  };
}

/** Starts Neo in this process; it is closed with the test. */
export async function startedNeo(
  t: TestContext,
  options: Partial<Omit<NeoOptions, 'config'>> & { config?: Partial<NeoConfig>; dataDir?: string } = {},
): Promise<RunningNeo> {
  const { config, dataDir = temporaryFolder(t), ...others } = options;
  const neo = await startNeo({ config: testConfig(dataDir, config), clock: systemClock, log: silentLogger, ...others });
  t.after(() => neo.close());
  return neo;
}

/** Begins the oldest waiting turn of a conversation, as the engine does; `undefined` when none waits. */
export async function beginNext(store: ConversationStore, conversationId: string): Promise<Turn | undefined> {
  const waiting = store.unfinished().find((turn) => turn.conversationId === conversationId && turn.status === 'queued');
  return waiting && (await store.begin(waiting.id, { spawnId: 'test', isCertain: true }));
}

export type Answer = { status: number; text: string; headers: Headers };

/** Sends a request with the token. */
export async function ask(neo: { url: string }, path: string, init: RequestInit = {}): Promise<Answer> {
  const headers = new Headers({ authorization: `Bearer ${TOKEN}`, ...(init.headers as Record<string, string>) });
  const response = await fetch(neo.url + path, { ...init, headers });
  return { status: response.status, text: await response.text(), headers: response.headers };
}

/** The content of a success envelope. */
export const dataOf = ({ text }: Answer) => JSON.parse(text).data;

/** A failure envelope and its status. */
export function errorOf({ status, text }: Answer): { status: number; code: string; message: string } {
  const { ok, error } = JSON.parse(text);
  assert.equal(ok, false);
  return { status, code: error.code, message: error.message };
}

/** Posts to `/chat`; a string is sent unchanged. */
export function postChat(
  neo: { url: string },
  body: string | object,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return ask(neo, '/chat', { method: 'POST', body: text, headers: { 'content-type': 'application/json', ...headers } });
}

/** Posts to `/chat` and expects the turn to be accepted or known. */
export async function accepted(neo: { url: string }, body: string | object): Promise<ChatAccepted> {
  const answer = await postChat(neo, body);
  assert.ok(answer.status === 202 || answer.status === 200, `${answer.status} ${answer.text}`);
  return chatAcceptedSchema.parse(JSON.parse(answer.text).data);
}

export async function turnsOf(neo: { url: string }, conversationId: string): Promise<TurnView[]> {
  const answer = await ask(neo, `/conversations/${conversationId}`);
  assert.equal(answer.status, 200, answer.text);
  return conversationViewSchema.parse(JSON.parse(answer.text).data).turns;
}

/** Reads the conversation until all its turns have ended. */
export function settledTurns(neo: { url: string }, conversationId: string): Promise<TurnView[]> {
  return eventually('the end of every turn', async () => {
    const turns = await turnsOf(neo, conversationId);
    return turns.every(({ finished_at }) => finished_at !== undefined) && turns;
  });
}

/** A request that a {@link pausedModel} has received. */
export type PausedRequest = {
  readonly request: ModelRequest;
  answer(text: string): void;
  fail(error: unknown): void;
};

/** A model that answers when the test allows it. */
export function pausedModel(): NeoModel & { readonly held: PausedRequest[]; next(): Promise<PausedRequest> } {
  const held: PausedRequest[] = [];
  const waiting: ((request: PausedRequest) => void)[] = [];
  let returned = 0;
  return {
    name: 'held',
    held,
    /** The next request that was not returned yet. */
    next() {
      const request = held[returned];
      returned++;
      return request ? Promise.resolve(request) : new Promise((resolve) => waiting.push(resolve));
    },
    generate(request) {
      return new Promise((resolve, reject) => {
        const entry: PausedRequest = {
          request,
          answer(text) {
            request.onText(text);
            resolve({ text, model: 'held' });
          },
          fail: reject,
        };
        request.signal.addEventListener('abort', () => reject(request.signal.reason));
        held.push(entry);
        waiting.shift()?.(entry);
      });
    },
  };
}

export type ReceivedEvent = { id: string | undefined; event: string; data: Record<string, unknown> };

/** Reads an event stream; `next` waits for a matching event. */
export async function readEvents(
  t: TestContext,
  neo: { url: string },
  query = '',
  headers: Record<string, string> = {},
) {
  const closing = new AbortController();
  t.after(() => closing.abort());
  const response = await fetch(`${neo.url}/events${query}`, {
    headers: { authorization: `Bearer ${TOKEN}`, ...headers },
    signal: closing.signal,
  });
  assert.equal(response.status, 200);
  const received: ReceivedEvent[] = [];
  const listeners = new Set<() => void>();
  let ended = false;
  const reading = (async () => {
    let text = '';
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      const blocks = text.split('\n\n');
      text = blocks.pop()!;
      for (const block of blocks) {
        const fields = new Map(block.split('\n').map((line) => line.split(/: (.*)/s) as [string, string]));
        if (!fields.has('data')) continue;
        received.push({ id: fields.get('id'), event: fields.get('event')!, data: JSON.parse(fields.get('data')!) });
      }
      for (const listener of [...listeners]) listener();
    }
  })()
    .catch(() => {})
    .finally(() => {
      ended = true;
      for (const listener of [...listeners]) listener();
    });
  return {
    received,
    /** Resolves when the server or the test has ended the stream. */
    ended: reading,
    stop: () => closing.abort(),
    /** The first matching event, past or future; an error when the stream ends before. */
    next(fits: (event: ReceivedEvent) => boolean): Promise<ReceivedEvent> {
      return new Promise((resolve, reject) => {
        const check = () => {
          const found = received.find(fits);
          if (!found && !ended) return;
          listeners.delete(check);
          if (found) resolve(found);
          else reject(new Error(`the stream ended after ${JSON.stringify(received)}`));
        };
        listeners.add(check);
        check();
      });
    },
  };
}
