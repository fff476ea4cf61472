/**
 * The page behind a link of a notification. It needs no session: whoever has the link may give the one answer that it
 * says to the one question that it was made for. Looking at it changes nothing; its form asks once more.
 */
import { html } from 'hono/html';
import type { WaitingGate } from '../../executor/client.ts';
import type { Clock } from '../../kit/clock/clock.ts';
import type { NotifyDesk } from '../../notify/client.ts';
import { toReveilleError } from '../../wire/errors.ts';
import type { Desk } from '../desk.ts';
import { type Assets, outsidePage } from '../page.ts';
import { answerToSign, passkeyAnswerIn, passkeysAt } from '../passkeys.ts';
import { type Html, NOTHING, shown } from '../shown.ts';
import type { Here } from '../times.ts';
import { type JsonAnswer, there } from '../request-context.ts';
import { firstAnswer, type WaitingQuestion } from '../waiting-questions.ts';
import { answerForm, isTrue, questionSection, signerWords } from './question.ts';

/** Reads links, and uses them up. */
export type Links = Pick<NotifyDesk['links'], 'read' | 'use' | 'tryPassphrase' | 'uncountPassphrase'>;
type Verdict = ReturnType<Links['read']>;
type Link = Extract<Verdict, { ok: true }>['link'];
type Refusal = Extract<Verdict, { ok: false }>['why'];

/** Who made a link up, and whose is too old, must not be told apart by whoever guesses. */
const NO_LINK = 'This link does not stand. It may be too old: it holds a quarter of an hour.';
const REFUSALS: Record<Refusal, string> = {
  malformed: NO_LINK,
  forged: NO_LINK,
  expired: NO_LINK,
  used: 'This question was answered by a link already. Each link answers once.',
  locked: 'This link is locked after five wrong passphrases. Answer in a terminal or in the console; it stays locked.',
  changed: 'The question does not wait any more as it was told to you: nothing was answered.',
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
  readonly here: (backend: Desk) => Here;
  readonly backendOf: (user: string) => Desk;
  readonly clock: Clock;
  readonly origin: string;
};

function said(assets: Assets, title: string, text: string, tone: 'good' | 'bad'): Html {
  const main = html`<section class="empty"><h1>${title}</h1><p class="notice ${tone}" role="status">${shown(text)}</p>
<p class="hint">In a terminal: <code>reveille intent list</code>, or <code>reveille open</code> for the console.</p></section>`;
  return outsidePage(title, main, assets);
}

const refused = (assets: Assets, why: Refusal, words = REFUSALS[why]): LinkPage => ({
  status: STATUS_OF_REFUSAL[why] ?? 401,
  page: said(assets, 'Not answered', words, 'bad'),
});

/** That a question does not wait as it was told, and who was first where somebody has answered it. */
async function gone(link: Link, backend: Desk, { here }: Pick<LinkContext, 'here'>): Promise<string> {
  const first = backend.user === link.user ? await firstAnswer(backend, here(backend), link) : undefined;
  return first ?? REFUSALS.changed;
}

/** The question that a link was made for, if it waits with the very call; `undefined` otherwise. */
async function questionOf(
  link: Link,
  backend: Desk,
): Promise<{ asked: WaitingQuestion; gates: WaitingGate[] } | undefined> {
  const intents = there(backend.intents);
  const told = await intents.gates(link.intentId);
  const found = told.find(({ value }) => value.node_id === link.nodeId);
  if (!found) return undefined;
  const { call, displayed_sha256 } = found.value;
  if (call.call_sha256 !== link.callSha256 || displayed_sha256 !== link.displayedSha256) return undefined;
  const { value: intent } = await intents.view(link.intentId);
  return { asked: { intent, gate: found.value, text: found.text.text }, gates: told.map(({ value }) => value) };
}

async function asking(link: Link, asked: WaitingQuestion, context: LinkContext, backend: Desk, complaint?: string) {
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
  const main = html`<h1>${link.approved ? 'Approve?' : 'Deny?'}</h1>
${complaint === undefined ? NOTHING : html`<p class="notice bad" role="alert">${shown(complaint)}</p>`}
${question}`;
  return outsidePage(link.approved ? 'Approve' : 'Deny', main, assets);
}

const saidBy = ({ approved, callSha256, displayedSha256 }: Link) => ({
  ...{ approved, call_sha256: callSha256, displayed_sha256: displayedSha256 },
});

/** `POST /answer/{token}/passkey`, sent by the script: what a passkey has to sign. The link is not used up by it. */
export async function askOfLink(context: LinkContext): Promise<JsonAnswer> {
  const { links, token, backendOf, origin, clock } = context;
  const verdict = links.read(token);
  if (!verdict.ok) return { json: { complaint: REFUSALS[verdict.why] } };
  const { link } = verdict;
  const backend = backendOf(link.user);
  const found = backend.user === link.user ? await questionOf(link, backend) : undefined;
  if (!found || !isTrue(found.asked.gate)) return { json: { complaint: await gone(link, backend, context) } };
  return { json: answerToSign(saidBy(link), link, await passkeysAt(backend, origin), clock.now()) };
}

/** `GET /answer/{token}`: shows the question and asks; changes nothing. */
export async function showLink(context: LinkContext): Promise<LinkPage> {
  const { links, token, assets, backendOf } = context;
  const verdict = links.read(token);
  if (!verdict.ok) return refused(assets, verdict.why);
  const backend = backendOf(verdict.link.user);
  const found = backend.user === verdict.link.user ? await questionOf(verdict.link, backend) : undefined;
  if (!found) return refused(assets, 'changed', await gone(verdict.link, backend, context));
  return { status: 200, page: await asking(verdict.link, found.asked, context, backend) };
}

/** Signs the answer of a link with the key of this computer. @returns `locked` after too many wrong passphrases */
async function signed(link: Link, backend: Desk, links: Links, form: URLSearchParams) {
  const approver = there(backend.approver);
  const passphrase = form.get('passphrase') ?? '';
  const isGuess = approver.known()?.isSealed === true && passphrase !== '';
  if (isGuess && !links.tryPassphrase(link)) return 'locked';
  try {
    const answer = await approver.sign(saidBy(link), link, passphrase);
    if (isGuess) links.uncountPassphrase(link);
    return answer;
  } catch (thrown) {
    if (isGuess && toReveilleError(thrown).code !== 'forbidden') links.uncountPassphrase(link);
    throw thrown;
  }
}

/** `POST /answer/{token}`: the answer that the link says, once, signed on this side. */
export async function useLink(context: LinkContext, form: URLSearchParams): Promise<LinkPage> {
  const { links, token, assets, backendOf } = context;
  const verdict = links.read(token);
  if (!verdict.ok) return refused(assets, verdict.why);
  const { link } = verdict;
  const backend = backendOf(link.user);
  const found = backend.user === link.user ? await questionOf(link, backend) : undefined;
  if (!found || !isTrue(found.asked.gate)) return refused(assets, 'changed', await gone(link, backend, context));
  const { approved, intentId, nodeId } = link;
  try {
    const passkeys = await passkeysAt(backend, context.origin);
    // Before the link is used up: a wrong passphrase may be typed again.
    const answer = passkeyAnswerIn(form, saidBy(link), passkeys) ?? (await signed(link, backend, links, form));
    if (answer === 'locked') return refused(assets, 'locked');
    const used = links.use(token, found.gates);
    if (!used.ok) return refused(assets, used.why);
    await there(backend.intents).answer(intentId, nodeId, answer);
    const words = `${approved ? 'Approved' : 'Denied'}, ${signerWords(answer, { passkeys })}`;
    return { status: 200, page: said(assets, approved ? 'Approved' : 'Denied', words, 'good') };
  } catch (thrown) {
    const { code, message, status, retryAfterSeconds } = toReveilleError(thrown);
    if (code === 'internal') throw thrown;
    const page = await asking(link, found.asked, context, backend, `Nothing was answered: ${message}`);
    return { status, page, retryAfterSeconds };
  }
}
