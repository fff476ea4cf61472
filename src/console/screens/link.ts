/**
 * The page behind the link of a notification. It needs no session: the link permits one answer to one question. A GET
 * changes nothing; the answer is a POST.
 */
import { html } from 'hono/html';
import type { WaitingGate } from '../../executor/client.ts';
import type { Clock } from '../../kit/clock/clock.ts';
import type { NotificationChannels } from '../../notify/client.ts';
import { toReveilleError } from '../../wire/errors.ts';
import type { ConsoleBackend } from '../backend.ts';
import { type Assets, outsidePage } from '../page.ts';
import { answerToSign, passkeyAnswerIn, passkeysAt } from '../passkeys.ts';
import { type JsonAnswer, there } from '../request-context.ts';
import { type Html, NOTHING, shown } from '../shown.ts';
import type { LocalContext } from '../times.ts';
import { firstAnswer, type WaitingQuestion } from '../waiting-questions.ts';
import { answerForm, hasTrueDigests, questionSection, signerText } from './question.ts';

/** Reads and consumes links. */
export type Links = Pick<NotificationChannels['links'], 'read' | 'use' | 'tryPassphrase' | 'uncountPassphrase'>;
type Verdict = ReturnType<Links['read']>;
type Link = Extract<Verdict, { ok: true }>['link'];
type Refusal = Extract<Verdict, { ok: false }>['why'];

/** One text for forged and expired links, so that a guess reveals nothing. */
const NO_LINK = 'This link is not valid. A link expires after 15 minutes.';
const REFUSALS: Record<Refusal, string> = {
  malformed: NO_LINK,
  forged: NO_LINK,
  expired: NO_LINK,
  used: 'A link has already answered this question. Each link works once.',
  locked: 'This link is locked after five wrong passphrases. Answer in a terminal or in the console.',
  changed: 'The question has changed since the notification. Nothing was answered.',
};

/** 401 otherwise. */
const STATUS_OF_REFUSAL: { readonly [Why in Refusal]?: number } = { used: 409, changed: 409, locked: 429 };

export type LinkPage = {
  readonly status: number;
  readonly page: Html;
  readonly retryAfterSeconds?: number | undefined;
};

export type LinkContext = {
  readonly links: Links;
  readonly token: string;
  readonly assets: Assets;
  readonly here: (backend: ConsoleBackend) => LocalContext;
  readonly backendOf: (user: string) => ConsoleBackend;
  readonly clock: Clock;
  readonly origin: string;
};

function resultPage(assets: Assets, title: string, text: string, tone: 'good' | 'bad'): Html {
  const main = html`<section class="empty outside"><h1>${title}</h1><p class="notice ${tone}" role="status">${shown(text)}</p>
<p class="hint"><code>reveille intent list</code> shows all questions; <code>reveille open</code> opens the console.</p></section>`;
  return outsidePage(title, main, assets);
}

const refused = (assets: Assets, why: Refusal, text = REFUSALS[why]): LinkPage => ({
  status: STATUS_OF_REFUSAL[why] ?? 401,
  page: resultPage(assets, 'Not answered', text, 'bad'),
});

/** Why a question is closed, with the approver if it was answered. */
async function closedReason(link: Link, backend: ConsoleBackend, { here }: Pick<LinkContext, 'here'>): Promise<string> {
  const first = backend.user === link.user ? await firstAnswer(backend, here(backend), link) : undefined;
  return first ?? REFUSALS.changed;
}

/** The question of a link if it still waits with the same call; `undefined` otherwise. */
async function questionOf(
  link: Link,
  backend: ConsoleBackend,
): Promise<{ asked: WaitingQuestion; gates: WaitingGate[] } | undefined> {
  const intents = there(backend.intents);
  const waiting = await intents.gates(link.intentId);
  const found = waiting.find(({ value }) => value.node_id === link.nodeId);
  if (!found) return undefined;
  const { call, displayed_sha256 } = found.value;
  if (call.call_sha256 !== link.callSha256 || displayed_sha256 !== link.displayedSha256) return undefined;
  const { value: intent } = await intents.view(link.intentId);
  return { asked: { intent, gate: found.value, text: found.text.text }, gates: waiting.map(({ value }) => value) };
}

async function questionPage(
  link: Link,
  asked: WaitingQuestion,
  context: LinkContext,
  backend: ConsoleBackend,
  complaint?: string,
) {
  const { assets, here, token, origin } = context;
  const buttons = link.approved
    ? html`<button class="primary">Approve this call</button>`
    : html`<button class="danger">Deny this call</button>`;
  const action = `/answer/${token}`;
  const given = { action, ask: `answer/${token}/passkey`, fields: NOTHING, buttons, id: 'link' };
  const passkeys = await passkeysAt(backend, origin);
  const question = questionSection(asked, { backend, here: here(backend) }, passkeys, (signers) =>
    answerForm(given, signers),
  );
  const main = html`<h1>${link.approved ? 'Confirm your approval' : 'Confirm your denial'}</h1>
${complaint === undefined ? NOTHING : html`<p class="notice bad" role="alert">${shown(complaint)}</p>`}
${question}`;
  return outsidePage(link.approved ? 'Approve' : 'Deny', main, assets);
}

const answerOf = ({ approved, callSha256, displayedSha256 }: Link) => ({
  ...{ approved, call_sha256: callSha256, displayed_sha256: displayedSha256 },
});

/** `POST /answer/{token}/passkey`, by the script: the challenge for a passkey. It does not consume the link. */
export async function linkChallenge(context: LinkContext): Promise<JsonAnswer> {
  const { links, token, backendOf, origin, clock } = context;
  const verdict = links.read(token);
  if (!verdict.ok) return { json: { complaint: REFUSALS[verdict.why] } };
  const { link } = verdict;
  const backend = backendOf(link.user);
  const found = backend.user === link.user ? await questionOf(link, backend) : undefined;
  if (!found || !hasTrueDigests(found.asked.gate))
    return { json: { complaint: await closedReason(link, backend, context) } };
  return { json: answerToSign(answerOf(link), link, await passkeysAt(backend, origin), clock.now()) };
}

/** `GET /answer/{token}`: shows the question and changes nothing. */
export async function showLink(context: LinkContext): Promise<LinkPage> {
  const { links, token, assets, backendOf } = context;
  const verdict = links.read(token);
  if (!verdict.ok) return refused(assets, verdict.why);
  const backend = backendOf(verdict.link.user);
  const found = backend.user === verdict.link.user ? await questionOf(verdict.link, backend) : undefined;
  if (!found) return refused(assets, 'changed', await closedReason(verdict.link, backend, context));
  return { status: 200, page: await questionPage(verdict.link, found.asked, context, backend) };
}

/** Signs the answer of a link with the key of this computer. @returns `locked` after too many wrong passphrases */
async function signed(link: Link, backend: ConsoleBackend, links: Links, form: URLSearchParams) {
  const approver = there(backend.approver);
  const passphrase = form.get('passphrase') ?? '';
  const isGuess = approver.known()?.isSealed === true && passphrase !== '';
  if (isGuess && !links.tryPassphrase(link)) return 'locked';
  try {
    const answer = await approver.sign(answerOf(link), link, passphrase);
    if (isGuess) links.uncountPassphrase(link);
    return answer;
  } catch (thrown) {
    if (isGuess && toReveilleError(thrown).code !== 'forbidden') links.uncountPassphrase(link);
    throw thrown;
  }
}

/** `POST /answer/{token}`: gives the answer of the link, once, signed by a passkey or the key of this computer. */
export async function useLink(context: LinkContext, form: URLSearchParams): Promise<LinkPage> {
  const { links, token, assets, backendOf } = context;
  const verdict = links.read(token);
  if (!verdict.ok) return refused(assets, verdict.why);
  const { link } = verdict;
  const backend = backendOf(link.user);
  const found = backend.user === link.user ? await questionOf(link, backend) : undefined;
  if (!found || !hasTrueDigests(found.asked.gate))
    return refused(assets, 'changed', await closedReason(link, backend, context));
  const { approved, intentId, nodeId } = link;
  try {
    const passkeys = await passkeysAt(backend, context.origin);
    // Signs before the link is consumed, so that the user can correct a wrong passphrase.
    const answer = passkeyAnswerIn(form, answerOf(link), passkeys) ?? (await signed(link, backend, links, form));
    if (answer === 'locked') return refused(assets, 'locked');
    const used = links.use(token, found.gates);
    if (!used.ok) return refused(assets, used.why);
    await there(backend.intents).answer(intentId, nodeId, answer);
    const text = `${approved ? 'Approved' : 'Denied'}, ${signerText(answer, { passkeys })}`;
    return { status: 200, page: resultPage(assets, approved ? 'Approved' : 'Denied', text, 'good') };
  } catch (thrown) {
    const { code, message, status, retryAfterSeconds } = toReveilleError(thrown);
    if (code === 'internal') throw thrown;
    const page = await questionPage(link, found.asked, context, backend, `Nothing was answered: ${message}`);
    return { status, page, retryAfterSeconds };
  }
}
