/**
 * Agent `opencode`: a running OpenCode server. The id of a turn's message is derived from its fire. So the session
 * shows whether a turn began and how it ended, even if the answer was lost.
 */

import { createHash } from 'node:crypto';
import { joinUrl } from '../kit/http/exchange.ts';
import { MachineUnavailable } from '../router/providers/provider.ts';
import type { Agent, Attempt } from '../turns/agent.ts';
import type { Outcome } from '../turns/turn.ts';
import { ReveilleError } from '../wire/errors.ts';
import { isPathSegment, pathSegment } from '../wire/identifier.ts';
import { isObject } from '../wire/json.ts';
import { type Answered, type CallResult, call } from './call.ts';
import type { AgentMaker, PresetOf } from './preset.ts';
import { RemoteAgent, type RemoteAgentOptions } from './remote-agent.ts';
import { textAt } from './terminal/readers.ts';
import { boundedReply } from './terminal/verdict.ts';
import { opencodeModel } from './terms.ts';

/** The number of newest messages of a session that are read. */
const MOST_MESSAGES = 100;
/** How often a missing message, or an idle session without an answer, is queried again before it is believed. */
const CONFIRMING_POLLS = 3;

const busy = (why: string): Outcome => ({ status: 'not_started', why });

class OpencodeAgent extends RemoteAgent {
  async check(_prompt: string, cwd: string | undefined): Promise<void> {
    const answer = await this.#request('GET', '/session/status', cwd, undefined, new AbortController().signal);
    if (answer.result === 'answered' && answer.status !== 401 && answer.status !== 403) return;
    const why = answer.result === 'answered' ? `it answered ${answer.summary}` : answer.why;
    const remedy = 'start it with: opencode serve; give its password as --token';
    const message = `the OpenCode server at ${this.machine.spec.url} cannot be used (${why}); ${remedy}`;
    throw answer.result === 'unsent' ? new MachineUnavailable(message) : new ReveilleError('unavailable', message);
  }

  async run(attempt: Attempt): Promise<Outcome> {
    const { signal, cwd } = attempt;
    const session = attempt.session ?? (await this.#newSession(attempt));
    if (typeof session !== 'string') return session;
    const state = await this.#stateOf(session, cwd, signal);
    if (state === 'busy') return busy('the session is busy with another turn');
    const id = opencodeMessageId(attempt.turn.fireId ?? attempt.turn.id, attempt.turn.scheduledFor);
    await attempt.begin();
    if (!(await attempt.storeNames({ session, handle: id })))
      return busy('the router could not store the id of the message');
    const wanted = attempt.turn.terms?.model;
    const model = wanted === undefined ? undefined : opencodeModel(wanted);
    const body = JSON.stringify({ messageID: id, model, parts: [{ type: 'text', text: attempt.prompt }] });
    const answer = await this.inTurn(attempt, (limited) =>
      this.#call('POST', `${sessionPath(session)}/message`, cwd, body, limited),
    );
    if (answer.result === 'unsent') return busy(`the server was not reached: ${answer.why}`);
    const outcome = answer.result === 'answered' ? certainOutcomeOf(answer, session) : undefined;
    return outcome ?? (await this.#follow(session, id, attempt));
  }

  async resume(attempt: Attempt): Promise<Outcome> {
    const { session, handle } = attempt.turn;
    // The ids are stored before the message is sent.
    if (session === undefined || handle === undefined) return busy('the router ended before it sent the message');
    return await this.#follow(session, handle, attempt);
  }

  async #newSession({ turn, cwd, signal }: Attempt): Promise<string | Outcome> {
    const body = JSON.stringify({ title: turn.label ?? 'Woken by Reveille' });
    const answer = await this.#request('POST', '/session', cwd, body, signal);
    if (answer.result !== 'answered') return busy(`no session could be created: ${answer.why}`);
    if (answer.status <= 299 && typeof answer.json?.id === 'string' && isPathSegment(answer.json.id))
      return answer.json.id;
    const why = `no session could be created; the server answered ${answer.summary}`;
    return answer.status >= 500 ? busy(why) : { status: 'failed', error: why };
  }

  /** If the server cannot report whether it is busy, the message itself shows it. */
  async #stateOf(session: string, cwd: string | undefined, signal: AbortSignal): Promise<'busy' | 'idle' | undefined> {
    const answer = await this.#request('GET', '/session/status', cwd, undefined, signal);
    if (answer.result !== 'answered' || answer.status !== 200 || !answer.json) return undefined;
    const status = answer.json[session];
    return isObject(status) && typeof status.type === 'string' && status.type !== 'idle' ? 'busy' : 'idle';
  }

  /** Queries the session until it shows the outcome of a message. */
  #follow(session: string, id: string, attempt: Attempt): Promise<Outcome> {
    const { cwd, signal } = attempt;
    let absent = 0;
    let idle = 0;
    const texts = { aborted: 'the turn may still run', tooLong: 'no answer within the time for a turn' };
    return this.follow(attempt, { session, isBegun: false, ...texts }, async () => {
      const state = await this.#stateOf(session, cwd, signal);
      const path = `${sessionPath(session)}/message?limit=${MOST_MESSAGES}`;
      const answer = await this.#request('GET', path, cwd, undefined, signal);
      if (answer.result !== 'answered') return answer.why;
      if (answer.status === 404) return { status: 'unknown', session, error: 'the session was deleted with its turn' };
      if (!answer.list) return `the server answered ${answer.summary}`;
      const { arrived, answer: found, over } = findTurn(answer.list, id);
      absent = arrived ? 0 : absent + 1;
      if (absent >= CONFIRMING_POLLS) return busy('the message did not arrive');
      if (found && (over || state === 'idle')) return outcomeOf(found, session);
      idle = arrived && state === 'idle' ? idle + 1 : 0;
      if (idle < CONFIRMING_POLLS) return 'the session is still running';
      const error = 'the session received the message and ended without an answer to it';
      return { status: 'failed', session, error };
    });
  }

  #request(
    method: 'GET' | 'POST',
    path: string,
    cwd: string | undefined,
    body: string | undefined,
    signal: AbortSignal,
  ): Promise<CallResult> {
    return this.soon(signal, (limited) => this.#call(method, path, cwd, body, limited));
  }

  #call(
    method: 'GET' | 'POST',
    path: string,
    cwd: string | undefined,
    body: string | undefined,
    signal: AbortSignal,
  ): Promise<CallResult> {
    const { spec, token } = this.machine;
    const url = joinUrl(spec.url!, path);
    if (cwd !== undefined) url.searchParams.set('directory', cwd);
    // A server without a password ignores it.
    const authorization = `Basic ${Buffer.from(`opencode:${token}`).toString('base64')}`;
    const headers = { authorization };
    const secrets = [token, authorization];
    return call(this.dispatcher, {
      method,
      url,
      headers,
      ...(body === undefined ? {} : { body }),
      signal,
      secrets,
    });
  }
}

const sessionPath = (session: string) => `/session/${pathSegment(session)}`;

/** The certain outcome from the answer to a message; otherwise the session is queried. */
function certainOutcomeOf(answer: Answered, session: string): Outcome | undefined {
  const { status, json, summary } = answer;
  if (status <= 299) {
    const message = messageOf(json);
    return message?.info.role === 'assistant' ? outcomeOf(message, session) : undefined;
  }
  if (status === 404) return { status: 'no_session', why: `the server answered ${summary}` };
  if (status === 409 || status === 429 || status === 503) return busy(`the server answered ${summary}`);
  return status <= 499 ? { status: 'failed', session, error: `the server refused the message: ${summary}` } : undefined;
}

export function opencodeAgent(options: RemoteAgentOptions): AgentMaker<PresetOf<'opencode'>, Agent> {
  return (preset, machine) => new OpencodeAgent(options, preset, machine);
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_CHARACTERS = 14;

/**
 * The message id of a wake, derived from its fire. It has the form of the server's own ids, because older servers read
 * the order of messages from it. The first 12 hex digits count time in 4096ths of a millisecond (modulo 2^48).
 *
 * @param fireId `<alarm id>@<due, epoch milliseconds>`, or the id from the caller of the wake
 * @param scheduledFor the due time, for a fire id without one
 */
export function opencodeMessageId(fireId: string, scheduledFor = 0): string {
  const due = BigInt(/@(\d{1,16})$/.exec(fireId)?.[1] ?? scheduledFor);
  const time = ((due * 0x1000n) & 0xffff_ffff_ffffn).toString(16).padStart(12, '0');
  let digest = BigInt(`0x${createHash('sha256').update(fireId).digest('hex')}`);
  let rest = '';
  while (rest.length < RANDOM_CHARACTERS) {
    rest += BASE62[Number(digest % 62n)];
    digest /= 62n;
  }
  return `msg_${time}${rest}`;
}

/** A message of `GET /session/{id}/message`, or the answer to a prompt: `{info, parts}`. */
type Message = { info: Record<string, unknown>; parts: unknown[] };

export function messageOf(value: unknown): Message | undefined {
  if (!isObject(value) || !isObject(value.info)) return undefined;
  return { info: value.info, parts: Array.isArray(value.parts) ? value.parts : [] };
}

const replyOf = ({ parts }: Message): string =>
  parts
    .filter((part) => isObject(part) && part.type === 'text' && part.synthetic !== true)
    .map((part) => (isObject(part) && textAt(part, 'text')) || '')
    .filter((text) => text !== '')
    .join('\n\n');

function errorOf({ info }: Message): string | undefined {
  if (!isObject(info.error)) return undefined;
  const name = textAt(info.error, 'name') ?? 'an error';
  const detail = isObject(info.error.data) ? textAt(info.error.data, 'message') : undefined;
  return detail === undefined ? name : `${name}: ${detail}`;
}

/** The outcome of the turn from an assistant's message. */
export function outcomeOf(message: Message, session: string): Outcome {
  const error = errorOf(message);
  const reply = boundedReply(replyOf(message) || undefined);
  if (error !== undefined) return { status: 'failed', session, reply, error: `opencode reports ${error}` };
  return { status: 'done', session, reply };
}

/** Finds in the messages of a session ours, and the last that answers it; `over`: it reports that no other follows. */
export function findTurn(
  list: readonly unknown[],
  id: string,
): { arrived: boolean; answer: Message | undefined; over: boolean } {
  const messages = list.flatMap((entry) => messageOf(entry) ?? []);
  const arrived = messages.some(({ info }) => info.id === id);
  const answer = messages.findLast(({ info }) => info.role === 'assistant' && info.parentID === id);
  const completed = isObject(answer?.info.time) && answer.info.time.completed !== undefined;
  const over =
    answer !== undefined && (errorOf(answer) !== undefined || (completed && answer.info.finish !== 'tool-calls'));
  return { arrived, answer, over };
}
