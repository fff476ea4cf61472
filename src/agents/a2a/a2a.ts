/** Agent `a2a`: an agent that speaks A2A over HTTP+JSON or JSON-RPC; its agent card says which. */
import { createHash } from 'node:crypto';
import { MachineUnavailable } from '../../router/providers/provider.ts';
import type { Agent, Attempt } from '../../turns/agent.ts';
import type { Outcome } from '../../turns/turn.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { AgentMaker, PresetOf } from '../preset.ts';
import { RemoteAgent, type RemoteAgentOptions } from '../remote-agent.ts';
import { boundedReply } from '../terminal/verdict.ts';
import { A2aAgent, type Connection, type Reply, type Task } from './a2a-client.ts';

type Preset = PresetOf<'a2a'>;

/** The message id of a wake: a UUID derived from the fire id, so that an agent can recognize repetitions. */
export function a2aMessageId(fireId: string): string {
  const hex = createHash('sha256').update(`a2a:${fireId}`).digest('hex');
  // Version 8: a custom method (RFC 9562 §5.8).
  const variant = ((Number.parseInt(hex[16]!, 16) & 0x3) | 0x8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}

class A2aAgentOfMachine extends RemoteAgent {
  async check(): Promise<void> {
    const connection = await this.#connect(new AbortController().signal);
    // An agent that requests a later retry is reachable; its turn begins later.
    if (connection.result === 'connected' || connection.result === 'busy') return;
    const at = `the agent at ${this.machine.spec.url}`;
    if (connection.result === 'unusable')
      throw new ReveilleError('invalid_request', `${at} cannot be used: ${connection.why}`);
    const message = `${at} was not reached: ${connection.why}`;
    throw connection.result === 'unsent' ? new MachineUnavailable(message) : new ReveilleError('unavailable', message);
  }

  async run(attempt: Attempt): Promise<Outcome> {
    const { turn, session } = attempt;
    const connection = await this.#connect(attempt.signal);
    if (connection.result === 'busy') return notStarted(connection);
    if (connection.result === 'unusable') return { status: 'failed', session, error: connection.why };
    if (connection.result !== 'connected')
      return { status: 'not_started', why: `the agent was not reached: ${connection.why}` };
    const { agent } = connection;
    // The context is the conversation's own id until the agent returns another.
    const wanted = session ?? (turn.named ? turn.conversationId : undefined);
    await attempt.begin();
    const first = await this.#send(agent, attempt, wanted);
    if (first.result !== 'answered' || first.status < 400 || first.status > 404)
      return await this.#outcomeOf(agent, first, wanted, attempt);
    // An agent may reject a context that it did not create. Then no turn ran, and it creates one.
    if (session !== undefined || wanted === undefined) return await this.#outcomeOf(agent, first, wanted, attempt);
    return await this.#outcomeOf(agent, await this.#send(agent, attempt, undefined), undefined, attempt);
  }

  async resume(attempt: Attempt): Promise<Outcome> {
    const { handle, session } = attempt.turn;
    if (handle !== undefined) return await this.#follow(undefined, handle, session, attempt);
    return {
      status: 'unknown',
      session,
      error: 'the router ended before it received the task of the message',
    };
  }

  #connect(signal: AbortSignal): Promise<Connection> {
    const { dispatcher, machine } = this;
    return this.soon(signal, (limited) =>
      A2aAgent.connect({ dispatcher, url: machine.spec.url!, token: machine.token }, limited),
    );
  }

  #send(agent: A2aAgent, attempt: Attempt, contextId: string | undefined): Promise<Reply> {
    const { turn, prompt } = attempt;
    const message = { messageId: a2aMessageId(turn.fireId ?? turn.id), contextId, text: prompt };
    return this.inTurn(attempt, (limited) => agent.send(message, limited));
  }

  /** Reads the answer to the message, and waits for its task. */
  async #outcomeOf(agent: A2aAgent, answer: Reply, context: string | undefined, attempt: Attempt): Promise<Outcome> {
    const session = context;
    if (answer.result === 'unsent') return { status: 'not_started', why: `the agent was not reached: ${answer.why}` };
    if (answer.result === 'unknown') {
      return { status: 'unknown', session, error: `the agent received the message and did not answer: ${answer.why}` };
    }
    const { status, summary, message: direct, task } = answer;
    if (status === 429 || status === 503) return notStarted(answer);
    if (status === 502 || status === 504)
      return { status: 'unknown', session, error: `a proxy before the agent answered ${summary}` };
    if (status > 299) return { status: 'failed', session, error: `the agent refused the message: ${summary}` };
    if (direct) return { status: 'done', session: direct.contextId ?? session, reply: boundedReply(direct.text) };
    if (!task)
      return { status: 'unknown', session, error: `the agent's answer is neither a task nor a message: ${summary}` };
    const known = outcomeOfTask(task, session);
    if (known) return known;
    await attempt.storeNames({ handle: task.id, ...namedSession(task, session) });
    return await this.#follow(agent, task.id, task.contextId ?? session, attempt);
  }

  /** Polls a task until it has ended. */
  #follow(
    known: A2aAgent | undefined,
    taskId: string,
    session: string | undefined,
    attempt: Attempt,
  ): Promise<Outcome> {
    const { signal } = attempt;
    let agent = known;
    const aborted = "the agent's task may still run";
    const tooLong = "the agent's task did not end within the time for a turn";
    return this.follow(attempt, { session, isBegun: true, aborted, tooLong }, async () => {
      if (agent === undefined) {
        const connection = await this.#connect(signal);
        if (connection.result === 'busy') return `the agent answered ${connection.summary}`;
        if (connection.result !== 'connected') return connection.why;
        agent = connection.agent;
      }
      const connected = agent;
      const answer = await this.soon(signal, (limited) => connected.task(taskId, limited));
      if (answer.result !== 'answered') return answer.why;
      const { status, summary, task } = answer;
      if (status === 404) {
        return { status: 'unknown', session, error: `the agent does not know the task any more (${summary})` };
      }
      if (!task) return `the agent answered ${summary}`;
      return outcomeOfTask(task, session) ?? `it is ${task.state}`;
    });
  }
}

/** The turn did not begin: the agent, or a proxy before it, requests a later retry. */
function notStarted({
  summary,
  retryAfterSeconds,
}: {
  summary: string;
  retryAfterSeconds: number | undefined;
}): Outcome {
  const retryAfterMs = retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1000;
  return { status: 'not_started', why: `the agent answered ${summary}`, retryAfterMs };
}

const namedSession = ({ contextId }: Task, context: string | undefined) => {
  const session = contextId ?? context;
  return session === undefined ? {} : { session };
};

export function a2aAgent(options: RemoteAgentOptions): AgentMaker<Preset, Agent> {
  return (preset, machine) => new A2aAgentOfMachine(options, preset, machine);
}

const UNFINISHED = new Set(['submitted', 'working', 'unspecified']);

/** The outcome of the turn; `undefined` while the task is running. */
function outcomeOfTask(task: Task, context: string | undefined): Outcome | undefined {
  if (UNFINISHED.has(task.state)) return undefined;
  const session = task.contextId ?? context;
  const reply = boundedReply(
    [task.artifactText, task.statusText].filter((text) => text !== undefined).join('\n\n') || undefined,
  );
  const because = task.statusText === undefined ? '' : `: ${task.statusText}`;
  switch (task.state) {
    case 'completed':
      return { status: 'done', session, reply };
    case 'input_required':
      return {
        status: 'failed',
        session,
        reply,
        error: `the agent requests input, and no person is present to answer${because}`,
      };
    case 'auth_required':
      return {
        status: 'failed',
        session,
        reply,
        error: `the agent requests credentials, and no person is present to give them${because}`,
      };
    case 'failed':
    case 'rejected':
    case 'canceled':
    case 'cancelled':
      return {
        status: 'failed',
        session,
        reply,
        error: `the agent's task was ${task.state === 'failed' ? 'not completed: it failed' : task.state}${because}`,
      };
    default:
      return { status: 'unknown', session, error: `the agent's task is in an unknown state: ${task.state}` };
  }
}
