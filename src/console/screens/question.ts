/**
 * A question that waits, on a page: what will happen first, the exact call below, then all that was signed over. Nothing
 * can be approved whose digest is not that of what is shown here.
 */
import { html, raw } from 'hono/html';
import { digestsOf, type WaitingGate } from '../../executor/client.ts';
import { changesOf, effectOf, sectionsOf, type Trial, trialOf } from '../../kit/text/question.ts';
import { argumentLines, MARK, wholeLines } from '../../kit/text/visible.ts';
import type { GateAnswer } from '../../wire/executor.ts';
import { sliceAt } from '../../wire/json.ts';
import type { OfferedPasskey } from '../../wire/passkey.ts';
import { csrfField } from '../page.ts';
import { passkeysAt } from '../passkeys.ts';
import { brief, type Html, NOTHING, shown } from '../shown.ts';
import { time } from '../times.ts';
import type { RequestContext } from '../request-context.ts';
import type { WaitingQuestion } from '../waiting-questions.ts';

/** Whether the executor's digests are those of the call and the question that it sent. */
export function isTrue(gate: WaitingGate): boolean {
  const own = digestsOf(gate);
  return own.call_sha256 === gate.call.call_sha256 && own.displayed_sha256 === gate.displayed_sha256;
}

/** What the dry run said: as what changes, where it says that; its own words below. */
function trialBlock(trial: Trial): Html {
  const text = trial.words.join('\n');
  const found = changesOf(trial);
  const own = html`<pre class="trial" tabindex="0" aria-label="The dry run in its own words">${shown(text)}</pre>`;
  if (!found) return own;
  const lines = found.map(
    ({ what, from, to }) =>
      html`<li><span class="dim">${shown(what)}</span> ${shown(from)} → <strong>${shown(to)}</strong></li>`,
  );
  return html`<ul class="changes">${lines}</ul><details><summary>In its own words</summary>${own}</details>`;
}

/** What stands first: the amount, who gets it, and what the dry run says would come of it. */
function gist(gate: WaitingGate): Html {
  const sections = sectionsOf(gate.question);
  const fact = (starts: string, name: string) => {
    const found = sections.find(({ title }) => title.startsWith(starts));
    if (!found) return NOTHING;
    const said = found.lines.length > 0 ? found.lines.join('\n') : found.title.slice(starts.length).trim();
    return html`<div><dt>${name}</dt><dd>${shown(said)}</dd></div>`;
  };
  const trial = trialOf(gate.question);
  return html`<dl class="facts gist"><div><dt>tool</dt><dd><code>${shown(gate.call.tool)}</code></dd></div>
${trial === undefined ? NOTHING : html`<div><dt>tried out</dt><dd>${shown(trial.outcome)}${trial.words.length === 0 ? NOTHING : trialBlock(trial)}</dd></div>`}
${fact('Amount:', 'amount')}${fact('Recipient:', 'to')}${fact('Effect:', 'effect')}</dl>`;
}

/** The arguments that say what the call does, whole: right above the buttons, in a block that does not scroll. */
function effect({ question, call }: WaitingGate): Html {
  const found = effectOf(question);
  const isFact = (title: string) => title.startsWith('Amount:') || title.startsWith('Recipient:');
  const all = { title: 'Every argument, whole:', lines: wholeLines(call.args).map((line) => line.slice(MARK.length)) };
  const blocks = (found.length > 0 ? found : [all]).filter(({ title }) => !isFact(title));
  if (blocks.length === 0) return NOTHING;
  return html`<div class="effect">${blocks.map(({ title, lines }) => html`<h3>${title.replace(/:$/, '')}</h3><pre class="payload">${shown(lines.join('\n'))}</pre>`)}</div>`;
}

/** Where each value comes from, as the executor traced it. */
function sources(question: string): Html {
  const found = sectionsOf(question).find(({ title }) => title.startsWith('Where the values come from'));
  if (!found) return NOTHING;
  return html`<h3>Where each value comes from</h3><ul class="sources">${found.lines.map((line) => html`<li>${shown(line)}</li>`)}</ul>`;
}

/** Who may sign from here: the key of this side, as it is known, and passkeys of this address. */
export type Signers = {
  readonly key: { readonly publicKey: string; readonly name: string; readonly isSealed: boolean } | undefined;
  readonly passkeys: readonly OfferedPasskey[];
};

/** What signing with a sealed key needs besides. */
export function passphraseField(isSealed: boolean, id: string, isRequired = true): Html {
  if (!isSealed) return NOTHING;
  return html`<div class="field"><label for="pass-${id}">Passphrase of your key</label><input type="password" id="pass-${id}" name="passphrase" autocomplete="off"${isRequired ? raw(' required') : ''}></div>`;
}

/**
 * The form of an answer: a passkey signs it where the script finds one and a browser that has them; else the key of this
 * side does.
 *
 * @param ask where the script is told what a passkey has to sign, below the base
 */
export function answerForm(
  given: { action: string; ask: string; fields: Html; buttons: Html; id: string },
  { key, passkeys }: Signers,
): Html {
  const { action, ask, fields, buttons, id } = given;
  // What the script has to say of it.
  const said = html`<p class="notice bad" role="alert" data-error hidden></p>`;
  const byKey = key && html`Signed by ${shown(key.name)}, <code>${key.publicKey.slice(0, 16)}…</code>`;
  if (passkeys.length === 0)
    return html`<form method="post" action="${action}" class="answer" id="answer-${id}">${fields}${passphraseField(key?.isSealed ?? false, id)}
<div class="actions">${buttons}</div>
${said}
<p class="dim">${byKey}</p></form>`;
  const instead = key
    ? html`<details><summary>Sign with the key of this computer instead</summary>
<div class="field check"><input type="checkbox" id="by-${id}" name="by" value="key ${id}"><label for="by-${id}">${byKey}</label></div>${passphraseField(key.isSealed, id, false)}</details>`
    : NOTHING;
  return html`<form method="post" action="${action}" class="answer" id="answer-${id}" data-passkey="${ask}">${fields}
<div class="actions">${buttons}</div>
${said}
<p class="dim">Signed with your passkey: ${passkeys.map(({ name }, at) => html`${at === 0 ? '' : ' or '}${shown(name)}`)}</p>${instead}</form>`;
}

/** How it is said who signed. */
export const signerWords = ({ approver, passkey }: GateAnswer, { passkeys }: Pick<Signers, 'passkeys'>): string =>
  passkey === undefined
    ? `signed by ${approver.slice(0, 16)}…`
    : `signed with the passkey “${passkeys.find((one) => one.approver === approver)?.name ?? approver.slice(0, 16)}”`;

/**
 * A question, whole.
 *
 * @param form how it is answered, once it is known who signs and that the digests are those of what is shown
 */
export function questionSection(
  { intent, gate, text }: WaitingQuestion,
  { backend, here }: Pick<RequestContext, 'backend' | 'here'>,
  passkeys: readonly OfferedPasskey[],
  form: (signers: Signers) => Html,
): Html {
  const { call, displayed_sha256, expires_at, question } = gate;
  const key = 'there' in backend.approver ? backend.approver.there.known() : undefined;
  const why = !isTrue(gate)
    ? 'The executor’s digests are not those of what it shows: nothing can be answered here.'
    : 'missing' in backend.approver
      ? backend.approver.missing
      : 'There is no key to sign with here: make one and enrol it with "reveille approver enroll".';
  const args = sliceAt(text, ['call', 'args']) ?? 'null';
  const lines = argumentLines(call.args).map((line) => line.slice(MARK.length));
  const canSign = key !== undefined || passkeys.length > 0;
  const answer = canSign && isTrue(gate) ? form({ key, passkeys }) : html`<p class="notice bad">${shown(why)}</p>`;
  return html`<section class="ask" id="question-${displayed_sha256}" data-row data-question="${displayed_sha256}" aria-label="A question that waits" tabindex="-1">
<p class="who">${intent.prose === undefined ? 'A plan' : brief(intent.prose, 160)} <span class="dim">asked, waits until ${time(expires_at, here)}</span></p>
<h2>What will happen</h2>${gist(gate)}
${effect(gate)}
${answer}
<h3>The exact call</h3><pre class="payload" tabindex="0" aria-label="The exact call">${shown(call.tool)}\n${lines.map((line) => html`${shown(line)}\n`)}</pre>
<details><summary>As it is sent, digit for digit</summary><pre class="payload" tabindex="0" aria-label="As it is sent">${shown(args)}</pre></details>
${sources(question)}
<details><summary>The whole question, as it is signed</summary><pre class="whole" tabindex="0" aria-label="The whole question">${shown(question)}</pre><p class="dim">call <code>${call.call_sha256}</code><br>question <code>${displayed_sha256}</code></p></details>
</section>`;
}

/** The passkeys that pages of this context can ask for, shared by pages of the same moment. */
export const passkeysOf = ({ backend, origin, reads }: RequestContext): Promise<readonly OfferedPasskey[]> =>
  reads.read(`${backend.user} passkeys ${origin}`, () => passkeysAt(backend, origin));

/** @param back where an answer leads to, below the base */
export function questionBlock(
  asked: WaitingQuestion,
  context: RequestContext,
  passkeys: readonly OfferedPasskey[],
  back: string,
): Html {
  const { intent, gate } = asked;
  const { node_id, call, displayed_sha256 } = gate;
  const hidden = { intent_id: intent.intent_id, node_id, call_sha256: call.call_sha256, displayed_sha256, back };
  const fields = Object.entries(hidden).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  );
  const given = {
    ...{ action: 'approvals/answer', ask: 'approvals/passkey', id: displayed_sha256.slice(0, 12) },
    fields: html`${csrfField(context.session.csrf)}${fields}`,
    buttons: html`<button name="do" value="approve" class="primary" data-answer="y">Approve <kbd>y</kbd></button><button name="do" value="deny" class="danger" data-answer="d">Deny <kbd>d</kbd></button>`,
  };
  return questionSection(asked, context, passkeys, (signers) => answerForm(given, signers));
}
