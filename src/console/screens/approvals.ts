/** Approvals: what waits for the person, and what was decided, with receipts that are checked here. */
import { html } from 'hono/html';
import { conversationIdSchema } from '../../wire/alarm.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import type { IntentStatus } from '../../wire/executor.ts';
import type { IntentView } from '../../wire/intent-view.ts';
import { encodeJson } from '../../wire/json.ts';
import { empty, missing, type Page, waitingMark } from '../page.ts';
import { answerToSign, passkeyAnswerIn } from '../passkeys.ts';
import { block, brief, type Html, NOTHING, shown } from '../shown.ts';
import { type Here, time } from '../times.ts';
import { field, type Redirect, type JsonAnswer, there, type RequestContext } from '../request-context.ts';
import { firstAnswer, waitingOf } from '../waiting-questions.ts';
import { isTrue, passkeysOf, questionBlock, signerWords } from './question.ts';

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
  prose === undefined ? html`${shown(intent?.verb ?? 'a plan')}` : brief(prose, 120);

const row = (view: IntentView, here: Here): Html =>
  html`<li class="row" id="intent-${view.intent_id}" data-row><a class="name" href="approvals/${view.intent_id}" data-open dir="auto">${taskOf(view)}</a><span class="when">${time(view.ended_at ?? view.created_at, here)}</span>${state(view)}</li>`;

/** `approvals`. */
export async function approvalsScreen(context: RequestContext): Promise<Page> {
  const { backend, here, reads } = context;
  const { intents } = backend;
  if ('missing' in intents)
    return {
      screen: 'approvals',
      title: 'Approvals',
      main: html`<h1>Approvals</h1>${missing('Nothing is asked here', intents.missing)}`,
    };
  const [waiting, passkeys, all] = await Promise.all([
    waitingOf(backend, reads).look(),
    passkeysOf(context),
    reads.read(`${backend.user} intents`, () => intents.there.list({ limit: 50 })),
  ]);
  const past = all.map(({ value }) => value).filter(({ status }) => status !== 'awaiting_approval');
  const questions =
    waiting.length === 0
      ? empty(
          'Nothing waits for you',
          html`When your agent wants to do what cannot be undone, it is asked about here first. <code>reveille policy --help</code> says what is asked.`,
        )
      : html`${waiting.map((question) => questionBlock(question, context, passkeys, 'approvals'))}`;
  const history =
    past.length === 0
      ? NOTHING
      : html`<h2>What was decided</h2><ul class="rows intents">${past.map((view) => row(view, here))}</ul>`;
  return {
    screen: 'approvals',
    title: 'Approvals',
    looksAt: ['approvals'],
    main: html`<h1>Approvals</h1><div id="questions">${questions}</div>${history}<p><a href="approvals/passkeys">Passkeys</a> <span class="dim">${passkeys.length === 0 ? 'none that this page can ask for' : `${passkeys.length} for this address`}</span></p>`,
  };
}

/** `approvals/waiting`, for the script: what stands in the navigation. */
export async function countWaiting({ backend, reads }: RequestContext): Promise<JsonAnswer> {
  const { length } = await waitingOf(backend, reads).look();
  return { json: { html: String(await waitingMark(length)) } };
}

async function receiptBlock({ backend }: RequestContext, id: string): Promise<Html> {
  try {
    const { text } = await there(backend.intents).receipt(id);
    const { isWhole, lines } = await backend.verifyReceipt(text);
    return html`<h2>Receipt</h2><p class="notice ${isWhole ? 'good' : 'bad'}">${isWhole ? 'It was checked just now: every envelope, signature and digest holds.' : 'It does NOT hold.'}</p><pre class="whole" tabindex="0" aria-label="What the receipt says">${shown(lines.join('\n'))}</pre><p><a class="button" href="approvals/${id}/receipt" download="receipt-${id}.json">Take it with you</a> <span class="dim">and check it anywhere: <code>reveille receipt verify</code></span></p>`;
  } catch (thrown) {
    const { code, message } = toReveilleError(thrown);
    return code === 'not_found' ? NOTHING : html`<h2>Receipt</h2><p class="notice bad">${shown(message)}</p>`;
  }
}

/** `approvals/{id}`: one intent, its questions, what came of it, and its receipt. */
export async function intentScreen(context: RequestContext): Promise<Page> {
  const { backend, here, params, reads } = context;
  const { id = '' } = params;
  const { value: view } = await there(backend.intents).view(id);
  const waiting = (await waitingOf(backend, reads).look()).filter(({ intent }) => intent.intent_id === id);
  const passkeys = await passkeysOf(context);
  const nodes = view.nodes.map(
    ({ node_id, state: stands, detail }) =>
      html`<li><code>${shown(node_id)}</code> <span class="state ${stands}">${stands.replaceAll('_', ' ')}</span>${detail === undefined ? NOTHING : html` ${shown(detail)}`}</li>`,
  );
  const main = html`<p class="back"><a href="approvals">All approvals</a></p><h1 class="quiet">${taskOf(view)}</h1><p>${state(view)} ${time(view.created_at, here)}</p>
${waiting.map((question) => questionBlock(question, context, passkeys, `approvals/${id}`))}
${view.prose === undefined ? NOTHING : html`<h2>The task</h2>${block(view.prose)}`}
${view.clarify === undefined ? NOTHING : html`<h2>It has to know first</h2>${block(view.clarify)}`}
${view.error === undefined ? NOTHING : html`<h2>Why it did not happen</h2>${block(view.error.message)}`}
${view.result === undefined ? NOTHING : html`<h2>What came of it</h2><pre class="payload" tabindex="0" aria-label="What came of it">${shown(encodeJson(view.result))}</pre>`}
${nodes.length === 0 ? NOTHING : html`<h2>Steps</h2><ul class="plain">${nodes}</ul>`}
${view.conversation_id === undefined ? NOTHING : html`<p><a href="talk/${encodeURIComponent(view.conversation_id)}">The conversation that it comes from</a></p>`}
${await receiptBlock(context, id)}`;
  return { screen: 'approvals', title: 'Approval', looksAt: ['approvals'], main };
}

/** `approvals/{id}/receipt`: the very bytes. */
export async function receiptFile({ backend, params }: RequestContext) {
  const { text } = await there(backend.intents).receipt(params.id!);
  return { download: { name: `receipt-${params.id!.replace(/[^A-Za-z0-9._-]/g, '_')}.json`, text } };
}

/** A page of one question or conversation, or the list of questions. */
function pageOf(given: string): string {
  const [page, id, ...more] = given.split('/');
  if (id === undefined) return 'approvals';
  const isPage = page === 'approvals' || page === 'talk';
  return isPage && more.length === 0 && conversationIdSchema.safeParse(id).success ? given : 'approvals';
}

const must = (context: RequestContext, name: string): string => {
  const value = field(context, name);
  if (value !== undefined) return value;
  throw new ReveilleError('invalid_request', `${name} is missing; open the question again`);
};

/** What the form of a question says: the very question that was shown, and the answer. */
function saidIn(context: RequestContext) {
  const [intentId, nodeId] = [must(context, 'intent_id'), must(context, 'node_id')];
  const [call_sha256, displayed_sha256] = [must(context, 'call_sha256'), must(context, 'displayed_sha256')];
  const verdict = must(context, 'do');
  if (verdict !== 'approve' && verdict !== 'deny')
    throw new ReveilleError('invalid_request', 'an answer is approve or deny');
  return {
    about: { intentId, nodeId },
    said: { approved: verdict === 'approve', call_sha256, displayed_sha256 },
  };
}

const CHANGED = 'Another question waits now than the one that was shown: nothing was answered. Look at it again.';

/** Why the question that was shown cannot be answered any more. */
async function gone(context: RequestContext, { said, about }: ReturnType<typeof saidIn>): Promise<string | undefined> {
  const gates = await there(context.backend.intents).gates(about.intentId);
  const gate = gates.map(({ value }) => value).find(({ node_id }) => node_id === about.nodeId);
  if (!gate) return (await firstAnswer(context.backend, context.here, about)) ?? 'This question does not wait any more.';
  const isShown = gate.call.call_sha256 === said.call_sha256 && gate.displayed_sha256 === said.displayed_sha256;
  return isShown && isTrue(gate) ? undefined : CHANGED;
}

/** `approvals/passkey`, sent by the script: what a passkey has to sign. */
export async function askPasskey(context: RequestContext): Promise<JsonAnswer> {
  const asked = saidIn(context);
  const complaint = await gone(context, asked);
  if (complaint !== undefined) return { json: { complaint } };
  return { json: answerToSign(asked.said, asked.about, await passkeysOf(context), context.clock.now()) };
}

/** `approvals/answer`, sent: an answer to the very question that was shown, signed with a passkey or on this side. */
export async function answerQuestion(context: RequestContext): Promise<Page | Redirect> {
  const { backend, form, session } = context;
  const asked = saidIn(context);
  const { about, said } = asked;
  const { intentId, nodeId } = about;
  const back = pageOf(form.get('back') ?? '');
  const complaint = await gone(context, asked);
  if (complaint !== undefined) {
    session.messages.error(complaint);
    return { to: complaint === CHANGED ? back : `approvals/${intentId}` };
  }
  try {
    const passkeys = await passkeysOf(context);
    const answer =
      passkeyAnswerIn(form, said, passkeys) ??
      (await there(backend.approver).sign(said, about, form.get('passphrase') ?? undefined));
    await there(backend.intents).answer(intentId, nodeId, answer);
    session.messages.success(`${said.approved ? 'Approved' : 'Denied'}, ${signerWords(answer, { passkeys })}`);
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
