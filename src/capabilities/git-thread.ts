/**
 * The thread of one git operation. It has no environment and no credential: requests to a remote are made by the thread
 * that started it (`git-runner.ts`), which also ends it when it takes too long or too much memory.
 */
import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { Errors, type GitHttpRequest, type GitHttpResponse } from 'isomorphic-git';
import { Beneath, BeneathError } from '../kit/files/beneath.ts';
import { ReveilleError } from '../wire/errors.ts';
import { type Job, perform } from './git-operations.ts';

export type ThreadData = { readonly root: string; readonly job: Job };
export type RemoteRequest = { url: string; method: string; headers: Record<string, string>; body: Uint8Array };
export type RemoteAnswer =
  | { status: number; headers: Record<string, string>; body: Uint8Array }
  | { refused: { code: string; message: string } };
export type ThreadMessage =
  | { request: RemoteRequest }
  | { text: string }
  | { failed: { code: string; message: string } };

const { root, job } = workerData as ThreadData;

async function request({ url, method = 'GET', headers = {}, body }: GitHttpRequest): Promise<GitHttpResponse> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body ?? []) chunks.push(chunk);
  const answered = once(parentPort!, 'message');
  const message: ThreadMessage = { request: { url, method, headers, body: Buffer.concat(chunks) } };
  parentPort!.postMessage(message);
  const [answer] = (await answered) as [RemoteAnswer];
  if ('refused' in answer) throw new ReveilleError(answer.refused.code as 'unavailable', answer.refused.message);
  const content = (async function* () {
    yield answer.body;
  })();
  return { url, method, statusCode: answer.status, statusMessage: '', headers: answer.headers, body: content };
}

/** In the words of a tool's answer. What is not ours may quote a file of the repository, and nothing else. */
function failureOf(thrown: unknown): { code: string; message: string } {
  if (thrown instanceof ReveilleError) return { code: thrown.code, message: thrown.message };
  if (thrown instanceof BeneathError) return { code: 'invalid_request', message: thrown.message };
  if (thrown instanceof Errors.HttpError)
    return { code: 'unavailable', message: `the remote answered ${thrown.data.statusCode}` };
  if (thrown instanceof Errors.PushRejectedError)
    return { code: 'conflict', message: 'the push was rejected: it is no fast-forward. Pull first; nothing was sent' };
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return { code: 'invalid_request', message: `git could not do this: ${message.slice(0, 2000)}` };
}

const files = new Beneath(root);
let message: ThreadMessage;
try {
  message = { text: await perform(job, { root, files, http: { request } }) };
} catch (thrown) {
  message = { failed: failureOf(thrown) };
} finally {
  files.close();
}
parentPort!.postMessage(message);
