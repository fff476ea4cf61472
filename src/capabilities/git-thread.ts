/**
 * The thread for git operations, which run one at a time. It has no environment and no credential. `git-runner.ts`
 * makes the requests to remotes, and ends the thread at its time or memory limit.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { Errors, type GitHttpRequest, type GitHttpResponse } from 'isomorphic-git';
import { Beneath, BeneathError } from '../kit/files/beneath.ts';
import { ReveilleError, thrownText } from '../wire/errors.ts';
import { type Job, perform } from './git-operations.ts';

export type ThreadData = { readonly root: string };
export type JobMessage = { job: Job };
export type RemoteRequest = { url: string; method: string; headers: Record<string, string>; body: Uint8Array };
export type RemoteAnswer =
  | { status: number; headers: Record<string, string>; body: Uint8Array }
  | { refused: { code: string; message: string } };
export type ThreadMessage =
  | { request: RemoteRequest }
  | { text: string }
  | { failed: { code: string; message: string } };

// Discard the library's console output.
console.log = () => {};

const { root } = workerData as ThreadData;
/** Receives the answer to the pending request of an operation. */
let onAnswer = (_: RemoteAnswer) => {};

async function request({ url, method = 'GET', headers = {}, body }: GitHttpRequest): Promise<GitHttpResponse> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body ?? []) chunks.push(chunk);
  const answered = new Promise<RemoteAnswer>((resolve) => {
    onAnswer = resolve;
  });
  const message: ThreadMessage = { request: { url, method, headers, body: Buffer.concat(chunks) } };
  parentPort!.postMessage(message);
  const answer = await answered;
  if ('refused' in answer) throw new ReveilleError(answer.refused.code as 'unavailable', answer.refused.message);
  const content = (async function* () {
    yield answer.body;
  })();
  return { url, method, statusCode: answer.status, statusMessage: '', headers: answer.headers, body: content };
}

/**
 * Converts an error to a tool's answer. Messages of the library may quote files of the repository, but nothing else.
 */
function failureOf(thrown: unknown): { code: string; message: string } {
  if (thrown instanceof ReveilleError) return { code: thrown.code, message: thrown.message };
  if (thrown instanceof BeneathError) return { code: 'invalid_request', message: thrown.message };
  if (thrown instanceof Errors.HttpError)
    return { code: 'unavailable', message: `the remote answered ${thrown.data.statusCode}` };
  if (thrown instanceof Errors.PushRejectedError)
    return {
      code: 'conflict',
      message: 'the push was rejected: it is not a fast-forward. Pull first; nothing was sent',
    };
  const message = thrownText(thrown);
  return { code: 'invalid_request', message: `git could not do this: ${message.slice(0, 2000)}` };
}

async function answerTo(job: Job): Promise<ThreadMessage> {
  const files = new Beneath(root);
  try {
    return { text: await perform(job, { root, files, http: { request } }) };
  } catch (thrown) {
    return { failed: failureOf(thrown) };
  } finally {
    files.close();
  }
}

parentPort!.on('message', (message: JobMessage | { answer: RemoteAnswer }) => {
  if ('answer' in message) onAnswer(message.answer);
  else void answerTo(message.job).then((answer) => parentPort!.postMessage(answer));
});
