/** Approvals: waiting questions and finished intents, whose receipts are verified here. */
import { html } from 'hono/html';
import { conversationIdSchema } from '../../wire/alarm.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import type { IntentStatus } from '../../wire/executor.ts';
import type { IntentView } from '../../wire/intent-view.ts';
import { encodeJson } from '../../wire/json.ts';
import { empty, missing, type Page, pageHead, waitingMark } from '../page.ts';
import { answerToSign, passkeyAnswerIn } from '../passkeys.ts';
import { field, type JsonAnswer, type Redirect, type RequestContext, there } from '../request-context.ts';
import { block, brief, type Html, NOTHING, shown } from '../shown.ts';
import { type LocalContext, time } from '../times.ts';
import { firstAnswer, waitingOf } from '../waiting-questions.ts';
import { hasTrueDigests, passkeysOf, questionBlock, signerText } from './question.ts';

const MARKS: Partial<Record<IntentStatus, string>> = {
  completed: 'good',
  awaiting_approval: 'held',
  failed: 'failed',
  denied: 'failed',
  unknown: 'failed',
};

const state = ({ status }: Pick<IntentView, 'status'>): Html =>
  html`<span class="state ${MARKS[status] ?? 'calm'}">${status.replaceAll('_', ' ')}</span>`;

const taskOf = ({ prose, intent }: IntentView): Html =>
  prose === undefined ? html`Plan: ${shown(intent?.verb ?? 'unknown')}` : brief(prose, 120);

const row = (view: IntentView, here: LocalContext): Html =>
  html`<li class="row" id="intent-${view.intent_id}" data-row><a class="name" href="approvals/${view.intent_id}" data-open dir="auto">${taskOf(view)}</a><span class="when">${time(view.ended_at ?? view.created_at, here)}</span>${state(view)}</li>`;

/** `approvals`. */
export async function approvalsScreen(context: RequestContext): Promise<Page> {
  const { backend, here, reads } = context;
  const { intents } = backend;
  if ('missing' in intents)
    return {
      screen: 'approvals',
      title: 'Approvals',
      main: html`${pageHead('Approvals')}${missing('Approvals are not available', intents.missing)}`,
    };
  const [waiting, passkeys, all] = await Promise.all([
    waitingOf(backend, reads),
    passkeysOf(context),
    reads.read(`${backend.user} intents`, () => intents.there.list({ limit: 50 })),
  ]);
  const past = all.map(({ value }) => value).filter(({ status }) => status !== 'awaiting_approval');
  const key = 'there' in backend.approver ? backend.approver.there.known() : undefined;
  const signer =
    passkeys.length > 0
      ? 'Answers are signed with your passkey.'
      : key
        ? 'Answers are signed with the key of this computer.'
        : NOTHING;
  const questions =
    waiting.length === 0
      ? empty(
          'No question is waiting',
          html`Your agent asks here before an action that cannot be undone. The policy decides which actions need an approval: <code>reveille policy --help</code>`,
        )
      : html`${waiting.map((question) => questionBlock(question, context, passkeys, 'approvals'))}`;
  const history =
    past.length === 0
      ? NOTHING
      : html`<h2>History</h2><ul class="rows intents">${past.map((view) => row(view, here))}</ul>`;
  return {
    screen: 'approvals',
    title: 'Approvals',
    looksAt: ['approvals'],
    main: html`${pageHead('Approvals', signer, html`<a class="button" href="approvals/passkeys">Passkeys</a>`)}<div id="questions">${questions}</div>${history}`,
  };
}

/** `approvals/waiting`, for the script: the count in the navigation. */
export async function countWaiting({ backend, reads }: RequestContext): Promise<JsonAnswer> {
  const { length } = await waitingOf(backend, reads);
  return { json: { html: String(await waitingMark(length)) } };
}

async function receiptBlock({ backend }: RequestContext, id: string): Promise<Html> {
  try {
    const { text } = await there(backend.intents).receipt(id);
    const { isWhole, lines } = await backend.verifyReceipt(text);
    return html`<h2>Receipt</h2><p class="notice ${isWhole ? 'good' : 'bad'}">${isWhole ? 'Verified now: every envelope, signature and digest is valid.' : 'This receipt is NOT valid.'}</p><pre class="whole" tabindex="0" aria-label="Content of the receipt">${shown(lines.join('\n'))}</pre><p><a class="button" href="approvals/${id}/receipt" download="receipt-${id}.json">Download</a> <span class="dim">Verify it anywhere with <code>reveille receipt verify</code></span></p>`;
  } catch (thrown) {
    const { code, message } = toReveilleError(thrown);
    return code === 'not_found' ? NOTHING : html`<h2>Receipt</h2><p class="notice bad">${shown(message)}</p>`;
  }
}

/** `approvals/{id}`: one intent with its questions, its result and its receipt. */
export async function intentScreen(context: RequestContext): Promise<Page> {
  const { backend, here, params, reads } = context;
  const { id = '' } = params;
  const { value: view } = await there(backend.intents).view(id);
  const waiting = (await waitingOf(backend, reads)).filter(({ intent }) => intent.intent_id === id);
  const passkeys = await passkeysOf(context);
  const nodes = view.nodes.map(
    ({ node_id, state: status, detail }) =>
      html`<li><code>${shown(node_id)}</code> <span class="state ${status}">${status.replaceAll('_', ' ')}</span>${detail === undefined ? NOTHING : html` ${shown(detail)}`}</li>`,
  );
  const main = html`<p class="back"><a href="approvals">Approvals</a></p>${pageHead(html`${taskOf(view)}`, html`${state(view)} ${time(view.created_at, here)}`)}
${waiting.map((question) => questionBlock(question, context, passkeys, `approvals/${id}`))}
${view.prose === undefined ? NOTHING : html`<h2>Task</h2>${block(view.prose)}`}
${view.clarify === undefined ? NOTHING : html`<h2>Open question</h2>${block(view.clarify)}`}
${view.error === undefined ? NOTHING : html`<h2>Error</h2>${block(view.error.message)}`}
${view.result === undefined ? NOTHING : html`<h2>Result</h2><pre class="payload" tabindex="0" aria-label="Result">${shown(encodeJson(view.result))}</pre>`}
${nodes.length === 0 ? NOTHING : html`<h2>Steps</h2><ul class="plain">${nodes}</ul>`}
${view.conversation_id === undefined ? NOTHING : html`<p><a href="chat/${encodeURIComponent(view.conversation_id)}">Open the conversation</a></p>`}
${await receiptBlock(context, id)}`;
  return { screen: 'approvals', title: 'Approval', looksAt: ['approvals'], main };
}

/** `approvals/{id}/receipt`: the bytes of the receipt. */
export async function receiptFile({ backend, params }: RequestContext) {
  const { text } = await there(backend.intents).receipt(params.id!);
  return { download: { name: `receipt-${params.id!.replace(/[^A-Za-z0-9._-]/g, '_')}.json`, text } };
}

/** The path of one intent or conversation, or of the list. */
function returnPath(given: string): string {
  const [page, id, ...more] = given.split('/');
  if (id === undefined) return 'approvals';
  const isPage = page === 'approvals' || page === 'chat';
  return isPage && more.length === 0 && conversationIdSchema.safeParse(id).success ? given : 'approvals';
}

const required = (context: RequestContext, name: string): string => {
  const value = field(context, name);
  if (value !== undefined) return value;
  throw new ReveilleError('invalid_request', `${name} is missing: open the question again`);
};

/** The content of an answer form: the displayed question and the answer. */
function answerIn(context: RequestContext) {
  const [intentId, nodeId] = [required(context, 'intent_id'), required(context, 'node_id')];
  const [call_sha256, displayed_sha256] = [required(context, 'call_sha256'), required(context, 'displayed_sha256')];
  const verdict = required(context, 'do');
  if (verdict !== 'approve' && verdict !== 'deny')
    throw new ReveilleError('invalid_request', `do must be approve or deny (got "${verdict}")`);
  return {
    about: { intentId, nodeId },
    answer: { approved: verdict === 'approve', call_sha256, displayed_sha256 },
  };
}

const CHANGED = 'The question has changed since it was displayed. Nothing was answered; read it again.';

/** Why the displayed question cannot be answered any more. */
async function closedReason(
  context: RequestContext,
  { answer, about }: ReturnType<typeof answerIn>,
): Promise<string | undefined> {
  const gates = await there(context.backend.intents).gates(about.intentId);
  const gate = gates.map(({ value }) => value).find(({ node_id }) => node_id === about.nodeId);
  if (!gate) return (await firstAnswer(context.backend, context.here, about)) ?? 'This question is no longer waiting.';
  const isShown = gate.call.call_sha256 === answer.call_sha256 && gate.displayed_sha256 === answer.displayed_sha256;
  return isShown && hasTrueDigests(gate) ? undefined : CHANGED;
}

/** `POST approvals/passkey`, by the script: the challenge for a passkey. */
export async function passkeyChallenge(context: RequestContext): Promise<JsonAnswer> {
  const given = answerIn(context);
  const complaint = await closedReason(context, given);
  if (complaint !== undefined) return { json: { complaint } };
  return { json: answerToSign(given.answer, given.about, await passkeysOf(context), context.clock.now()) };
}

/** `POST approvals/answer`: answers the displayed question, signed with a passkey or the key of this computer. */
export async function answerQuestion(context: RequestContext): Promise<Page | Redirect> {
  const { backend, form, session } = context;
  const given = answerIn(context);
  const { about, answer: content } = given;
  const { intentId, nodeId } = about;
  const back = returnPath(form.get('back') ?? '');
  const complaint = await closedReason(context, given);
  if (complaint !== undefined) {
    session.messages.error(complaint);
    return { to: complaint === CHANGED ? back : `approvals/${intentId}` };
  }
  try {
    const passkeys = await passkeysOf(context);
    const answer =
      passkeyAnswerIn(form, content, passkeys) ??
      (await there(backend.approver).sign(content, about, form.get('passphrase') ?? undefined));
    await there(backend.intents).answer(intentId, nodeId, answer);
    session.messages.success(`${content.approved ? 'Approved' : 'Denied'}, ${signerText(answer, { passkeys })}`);
    return { to: back };
  } catch (thrown) {
    const { code, message } = toReveilleError(thrown);
    if (code === 'internal') throw thrown;
    session.messages.error(
      (await firstAnswer(backend, context.here, about).catch(() => undefined)) ?? `Nothing was answered: ${message}`,
    );
    return { to: back };
  }
}
