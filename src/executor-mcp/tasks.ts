/**
 * Tasks of one submitter, for an MCP client: the executor's intents under the Tasks extension
 * (`io.modelcontextprotocol/tasks`, revision 2026-07-28). The executor has all state, so a restart of this server loses
 * nothing. A client can submit, read and cancel a task. It cannot approve one.
 */
import { createHmac, randomUUID } from 'node:crypto';
import type { ExecutorClient, Reply } from '../executor/client.ts';
import { type Clock, wait } from '../kit/clock/clock.ts';
import { NoAnswer } from '../kit/http/caller.ts';
import { sameSecret } from '../kit/identity/secrets.ts';
import { clip } from '../kit/text/excerpt.ts';
import { oneLine } from '../kit/text/hidden-characters.ts';
import { ReveilleError } from '../wire/errors.ts';
import { intentIdSchema, isIntentFinal } from '../wire/executor.ts';
import type { IntentView } from '../wire/intent-view.ts';
import { sliceAt } from '../wire/json.ts';
import { utf8Bytes } from '../wire/text.ts';

/** The methods of the executor's client that tasks need. None of them answers an approval gate. */
export type TaskExecutor = Pick<ExecutorClient, 'submit' | 'view' | 'gates' | 'cancel' | 'receipt'>;

export type TasksOptions = {
  /** For the submitter's user. */
  readonly executor: TaskExecutor;
  /** From {@link taskKey}. */
  readonly key: Buffer;
  readonly clock: Clock;
};

/** The states of a task in the extension. `failed` is missing: it is only for JSON-RPC errors, which end no intent. */
export type TaskStatus = 'working' | 'completed' | 'cancelled';

/** An intent as its submitter sees it. */
export type TaskState = {
  readonly taskId: string;
  readonly intentId: string;
  readonly status: TaskStatus;
  /** The executor's own status, such as `awaiting_approval`. */
  readonly intentStatus: IntentView['status'];
  /** A sentence for the model: the reason for waiting, or the outcome. */
  readonly message: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  /** Whether an ended task was completed as requested. */
  readonly succeeded: boolean;
  /** The source text of the outcome, so that numbers keep their digits. */
  readonly result?: string;
  readonly receipt?: IntentView['receipt'];
};

/** A longer receipt is not sent, because the model would have to read it. */
const RECEIPT_MAX_BYTES = 256 * 1024;
const CALL_CHARACTERS = 200;
/** Delays between attempts to submit. */
const SUBMIT_RETRY_MS = [250, 750, 2000];
/** Poll interval while a caller waits for a task. */
const LOOK_MS = 500;

/**
 * The key of the task ids of one caller. Different parts give unrelated keys.
 *
 * @param secret known to the server alone: a submitter's token, or the secret of a daemon
 * @param caller identifies the caller, such as issuer, subject and client
 */
export function taskKey(secret: string, ...caller: readonly string[]): Buffer {
  return createHmac('sha256', secret)
    .update(JSON.stringify(['reveille task', ...caller]))
    .digest();
}

const digest = (key: Buffer, text: string): string =>
  createHmac('sha256', key).update(text).digest('base64url').slice(0, 32);

const unknownTask = () => new ReveilleError('not_found', 'Task not found');

/** Whether an intent has ended, or needs more information from its submitter. */
function isSettled(view: IntentView): boolean {
  return isIntentFinal(view) || (view.status === 'drafting' && Boolean(view.clarify));
}

function endMessage({ status, error, clarify }: IntentView): string {
  const why = error === undefined ? '' : `: ${error.message}`;
  switch (status) {
    case 'completed':
      return 'The task was completed.';
    case 'denied':
      return `The task was denied${why}. Do not submit it again unless the user asks for it.`;
    case 'cancelled':
      return `The task was cancelled${why}. Not all of it was carried out.`;
    case 'unknown':
      return `It is not known whether the task was carried out${why}. Do not submit it again; report it to the user.`;
    case 'failed':
      return `The task failed${why}.`;
    default:
      return `Nothing was done. The executor has a question: ${clarify}. Submit the task again with the answer in it.`;
  }
}

/** The newest instant of an intent's record that the view shows. */
function lastUpdate({ created_at, ended_at, nodes }: IntentView): string {
  const instants = [created_at, ...nodes.flatMap(({ answered }) => (answered ? [answered.at] : []))];
  return ended_at ?? instants.reduce((one, other) => (Date.parse(other) > Date.parse(one) ? other : one));
}

/** The tasks of one submitter. Every method throws ReveilleError `not_found` for an id that is not this submitter's. */
export function createTasks({ executor, key, clock }: TasksOptions) {
  const idOf = (intentId: string) => `${intentId}.${digest(key, intentId)}`;

  /** The proof in the id binds it to the submitter: the executor alone would find each intent of the user. */
  function intentOf(taskId: string): string {
    const at = taskId.lastIndexOf('.');
    const intentId = intentIdSchema.safeParse(taskId.slice(0, Math.max(at, 0)));
    if (intentId.success && sameSecret(taskId.slice(at + 1), digest(key, intentId.data))) return intentId.data;
    throw unknownTask();
  }

  async function waitingFor(view: IntentView): Promise<string> {
    const { intent_id: id, status, queued_behind } = view;
    if (queued_behind !== undefined) return 'The task starts when an earlier task of the same user has ended.';
    if (status !== 'awaiting_approval') return `The task is ${status}.`;
    const gates = await executor.gates(id);
    const calls = gates.map(({ value: { call } }) =>
      oneLine(`${call.tool} ${clip(JSON.stringify(call.args), CALL_CHARACTERS)}`),
    );
    const what = calls.length === 0 ? '' : ` of ${calls.join(' and of ')}`;
    return `The task waits for the user's approval${what}. Only the user can answer: in the console, or with "reveille intent approve ${id}".`;
  }

  async function stateOf({ value: view, text }: Reply<IntentView>): Promise<TaskState> {
    const settled = isSettled(view);
    const ended: TaskStatus = view.status === 'cancelled' ? 'cancelled' : 'completed';
    const result = sliceAt(text.text, ['result']);
    return {
      taskId: idOf(view.intent_id),
      intentId: view.intent_id,
      status: settled ? ended : 'working',
      intentStatus: view.status,
      message: settled ? endMessage(view) : await waitingFor(view),
      createdAt: view.created_at,
      lastUpdatedAt: lastUpdate(view),
      succeeded: view.status === 'completed',
      ...(result !== undefined && { result }),
      ...(view.receipt && { receipt: view.receipt }),
    };
  }

  async function look(intentId: string, signal?: AbortSignal): Promise<TaskState> {
    try {
      return await stateOf(await executor.view(intentId, signal));
    } catch (thrown) {
      throw thrown instanceof ReveilleError && thrown.code === 'not_found' ? unknownTask() : thrown;
    }
  }

  return {
    /**
     * Submits a task. It is durable when this resolves.
     *
     * @param again the idempotency key: with the same value, this submitter gets the same task
     */
    async submit(prose: string, again: string | undefined, signal: AbortSignal): Promise<TaskState> {
      const idempotency_key = `mcp-${again === undefined ? randomUUID() : digest(key, `again ${again}`)}`;
      let mayHaveArrived = false;
      for (let tries = 0; ; tries++) {
        // After a lost answer, only a repetition returns the id, which a cancellation needs.
        if (!mayHaveArrived) signal.throwIfAborted();
        try {
          return await look(await executor.submit({ prose, idempotency_key, origin: 'person' }));
        } catch (thrown) {
          if (!(thrown instanceof ReveilleError) || !thrown.retryable) throw thrown;
          if (thrown instanceof NoAnswer) mayHaveArrived ||= thrown.mayHaveArrived;
          const delayMs = SUBMIT_RETRY_MS[tries];
          if (delayMs === undefined) throw thrown;
          await wait(clock, delayMs, mayHaveArrived ? undefined : signal);
        }
      }
    },

    read: async (taskId: string, signal?: AbortSignal): Promise<TaskState> => look(intentOf(taskId), signal),

    /** The state when the task has ended, or after `waitMs`. */
    async readWithin(taskId: string, waitMs: number, signal: AbortSignal): Promise<TaskState> {
      const until = clock.now() + waitMs;
      for (;;) {
        const state = await look(intentOf(taskId), signal);
        const leftMs = until - clock.now();
        if (state.status !== 'working' || leftMs <= 0) return state;
        await wait(clock, Math.min(LOOK_MS, leftMs), signal);
        signal.throwIfAborted();
      }
    },

    /**
     * Cancels the intent.
     *
     * @returns its state: `cancelled`, or an earlier end
     * @throws ReveilleError `conflict` if a call that cannot be undone has started: the task continues
     */
    async cancel(taskId: string): Promise<TaskState> {
      const intentId = intentOf(taskId);
      try {
        await executor.cancel(intentId, 'the agent that submitted it cancelled it');
      } catch (thrown) {
        const isRefused = thrown instanceof ReveilleError && thrown.code === 'conflict';
        const state = isRefused ? await look(intentId) : undefined;
        if (state === undefined || state.status === 'working') throw thrown;
        return state;
      }
      return look(intentId);
    },

    /** The signed receipt of an ended task, byte for byte; `undefined` if there is none, or it is too long. */
    async receipt({ intentId, receipt }: TaskState): Promise<string | undefined> {
      if (receipt === undefined) return undefined;
      const { text } = await executor.receipt(intentId);
      return utf8Bytes(text) > RECEIPT_MAX_BYTES ? undefined : text;
    },
  };
}
export type Tasks = ReturnType<typeof createTasks>;
