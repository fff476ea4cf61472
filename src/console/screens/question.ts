/**
 * A waiting question on a page: the effect as a title, the exact call below it, then the whole signed text. An answer is
 * possible only if the executor's digests match the displayed question.
 */
import { html, raw } from 'hono/html';
import { digestsOf, type WaitingGate } from '../../executor/client.ts';
import {
  changesOf,
  type DryRun,
  dryRunOf,
  effectOf,
  headOf,
  type Section,
  sectionsOf,
} from '../../kit/text/question.ts';
import { argumentLines, MARK, wholeLines } from '../../kit/text/visible.ts';
import type { GateAnswer } from '../../wire/executor.ts';
import { sliceAt } from '../../wire/json.ts';
import type { OfferedPasskey } from '../../wire/passkey.ts';
import { csrfField } from '../page.ts';
import { passkeysAt } from '../passkeys.ts';
import type { RequestContext } from '../request-context.ts';
import { brief, type Html, NOTHING, shown } from '../shown.ts';
import { time } from '../times.ts';
import type { WaitingQuestion } from '../waiting-questions.ts';

/** Whether the executor's digests match the call and the question that it sent. */
export function hasTrueDigests(gate: WaitingGate): boolean {
  const own = digestsOf(gate);
  return own.call_sha256 === gate.call.call_sha256 && own.displayed_sha256 === gate.displayed_sha256;
}

/** A member as the question shows it, `"from": "alice"`, or a value alone: the value as text. */
function textOf({ lines }: Section): string {
  const text = lines.join('\n');
  try {
    const [value] = Object.values(JSON.parse(/^"(?:[^"\\]|\\.)*": /.test(text) ? `{${text}}` : `[${text}]`));
    return typeof value === 'string' ? value : text;
  } catch {
    return text;
  }
}

const FACTS = { Amount: 'Amount', Payer: 'From', Recipient: 'To' } as const;
const factOf = (sections: readonly Section[], name: string): Section | undefined =>
  sections.find(({ title, lines }) => title.startsWith(name) && lines.length > 0);

/** `transfer` reads as `Pay`, `create_directory` as `Create directory`. */
function verbOf(tool: string): string {
  const name = tool.split('/').at(-1)!;
  if (name === 'transfer') return 'Pay';
  return `${name.slice(0, 1).toUpperCase()}${name.slice(1).replaceAll(/[_-]+/g, ' ')}`;
}

/** The effect of the call as a title, such as `Pay 25.00 EUR: alice → bob`. */
export function headlineOf({ call, question }: Pick<WaitingGate, 'call' | 'question'>): Html {
  const sections = sectionsOf(headOf(question).join('\n'));
  const [amount, payer, recipient] = ['Amount', 'Payer', 'Recipient'].map((name) => factOf(sections, name));
  const verb = verbOf(call.tool);
  const short = (section: Section) => brief(textOf(section), 60);
  if (amount) {
    const to = recipient && html`${payer ? html`${short(payer)} → ` : 'to '}${short(recipient)}`;
    return html`${shown(verb)} ${short(amount)}${to ? html`${payer ? ':' : ''} ${to}` : NOTHING}`;
  }
  const [first] = effectOf(question).filter(({ title }) => !title.startsWith('Every argument'));
  if (!first) return html`Call ${shown(call.tool)}`;
  return html`${first.title.startsWith('Command') ? 'Run' : shown(verb)}: ${brief(textOf(first), 80)}`;
}

/** The dry run: the changes that it predicts, and its output. It must not read as if the call had been made. */
function dryRun(trial: DryRun | undefined): Html {
  if (trial === undefined) return NOTHING;
  const { outcome, output: lines } = trial;
  const found = changesOf(trial);
  const hasSucceeded = /went through|succeeded/.test(outcome);
  const output = html`<pre class="trial" tabindex="0" aria-label="Output of the dry run">${shown(lines.join('\n'))}</pre>`;
  const changes = found?.map(
    ({ what, from, to }) =>
      html`<li><span class="dim">${shown(what)}</span> ${shown(from)} → <strong>${shown(to)}</strong></li>`,
  );
  const result = hasSucceeded ? NOTHING : html`<p class="bad">Result: ${shown(outcome)}</p>`;
  const detail = changes
    ? html`<ul class="changes">${changes}</ul><details><summary>Output of the dry run</summary>${output}</details>`
    : lines.length > 0
      ? output
      : NOTHING;
  return html`<div class="forecast"><h3>Dry run${changes ? ': expected change' : ''}</h3><p class="hint">Nothing has been executed yet.</p>${result}${detail}</div>`;
}

/** Amount, payer and recipient whole, then the tool and its class. */
function gist({ question, call }: WaitingGate): Html {
  const sections = sectionsOf(question);
  const facts = Object.entries(FACTS).map(([name, label]) => {
    const found = factOf(sections, name) ?? sections.find(({ title }) => title.startsWith(`${name}:`));
    if (!found) return NOTHING;
    const text = found.lines.length > 0 ? textOf(found) : found.title.slice(name.length + 1).trim();
    return html`<div><dt>${label}</dt><dd>${shown(text)}</dd></div>`;
  });
  const effect = sections
    .find(({ title }) => title.startsWith('Effect:'))
    ?.title.slice('Effect:'.length)
    .trim();
  return html`<dl class="facts gist">${facts}<div><dt>Tool</dt><dd><code>${shown(call.tool)}</code></dd></div>${effect === undefined ? NOTHING : html`<div><dt>Effect</dt><dd>${shown(effect)}</dd></div>`}</dl>`;
}

/** The arguments that say what the call does, whole: right above the buttons, in a block that does not scroll. */
function effect({ question, call }: WaitingGate): Html {
  const found = effectOf(question);
  const isFact = (title: string) => Object.keys(FACTS).some((name) => title.startsWith(name));
  const all = { title: 'Every argument, whole:', lines: wholeLines(call.args).map((line) => line.slice(MARK.length)) };
  const blocks = (found.length > 0 ? found : [all]).filter(({ title }) => !isFact(title));
  if (blocks.length === 0) return NOTHING;
  return html`<div class="effect">${blocks.map(({ title, lines }) => html`<h3>${title.replace(/(?:, whole)?:$/, '')}</h3><pre class="payload">${shown(lines.join('\n'))}</pre>`)}</div>`;
}

/** The source of each value, as the executor traced it. */
function sources(question: string): Html {
  const found = sectionsOf(question).find(({ title }) => title.startsWith('Where the values come from'));
  if (!found) return NOTHING;
  return html`<h3>Sources of the values</h3><ul class="sources">${found.lines.map((line) => html`<li>${shown(line)}</li>`)}</ul>`;
}

/** The signers that this page can use: the key of this computer, and passkeys of this address. */
export type Signers = {
  readonly key: { readonly publicKey: string; readonly name: string; readonly isSealed: boolean } | undefined;
  readonly passkeys: readonly OfferedPasskey[];
};

/** The passphrase field of a sealed key. */
export function passphraseField(isSealed: boolean, id: string, isRequired = true): Html {
  if (!isSealed) return NOTHING;
  return html`<div class="field"><label for="pass-${id}">Passphrase of your key</label><input type="password" id="pass-${id}" name="passphrase" autocomplete="off"${isRequired ? raw(' required') : ''}></div>`;
}

/**
 * The form of an answer. A passkey signs it if the browser has one; otherwise the key of this computer signs.
 *
 * @param given.ask the path, below the base, at which the script gets the challenge of the passkey
 */
export function answerForm(
  given: { action: string; ask: string; fields: Html; buttons: Html; id: string },
  { key, passkeys }: Signers,
): Html {
  const { action, ask, fields, buttons, id } = given;
  // The script writes its errors here.
  const error = html`<p class="notice bad" role="alert" data-error hidden></p>`;
  const byKey = key && html`Signed by ${shown(key.name)}, <code>${key.publicKey.slice(0, 16)}…</code>`;
  if (passkeys.length === 0)
    return html`<form method="post" action="${action}" class="answer" id="answer-${id}">${fields}${passphraseField(key?.isSealed ?? false, id)}
<div class="actions">${buttons}</div>
${error}
<p class="dim">${byKey}</p></form>`;
  const instead = key
    ? html`<details><summary>Sign with the key of this computer</summary>
<div class="field check"><input type="checkbox" id="by-${id}" name="by" value="key ${id}"><label for="by-${id}">${byKey}</label></div>${passphraseField(key.isSealed, id, false)}</details>`
    : NOTHING;
  return html`<form method="post" action="${action}" class="answer" id="answer-${id}" data-passkey="${ask}">${fields}
<div class="actions">${buttons}</div>
${error}
<p class="dim">Signed with your passkey: ${passkeys.map(({ name }, at) => html`${at === 0 ? '' : ' or '}${shown(name)}`)}</p>${instead}</form>`;
}

/** The signer of an answer, for a message. */
export const signerText = ({ approver, passkey }: GateAnswer, { passkeys }: Pick<Signers, 'passkeys'>): string =>
  passkey === undefined
    ? `signed by ${approver.slice(0, 16)}…`
    : `signed with the passkey “${passkeys.find((one) => one.approver === approver)?.name ?? approver.slice(0, 16)}”`;

/** @param form the form of its answer; it is used only if a signer is available and the digests match */
export function questionSection(
  { intent, gate, text }: WaitingQuestion,
  { backend, here }: Pick<RequestContext, 'backend' | 'here'>,
  passkeys: readonly OfferedPasskey[],
  form: (signers: Signers) => Html,
): Html {
  const { call, displayed_sha256, expires_at, question } = gate;
  const key = 'there' in backend.approver ? backend.approver.there.known() : undefined;
  const why = !hasTrueDigests(gate)
    ? 'The digests of the executor do not match this question, so it cannot be answered here.'
    : 'missing' in backend.approver
      ? backend.approver.missing
      : 'No approver key is available. Create and enrol one with "reveille approver enroll".';
  const args = sliceAt(text, ['call', 'args']) ?? 'null';
  const lines = argumentLines(call.args).map((line) => line.slice(MARK.length));
  const canSign = key !== undefined || passkeys.length > 0;
  const answer =
    canSign && hasTrueDigests(gate) ? form({ key, passkeys }) : html`<p class="notice bad">${shown(why)}</p>`;
  return html`<section class="ask" id="question-${displayed_sha256}" data-row data-question="${displayed_sha256}" aria-label="Waiting question" tabindex="-1">
<h2 dir="auto">${headlineOf(gate)}</h2>
<p class="from">${intent.prose === undefined ? NOTHING : html`Task: ${brief(intent.prose, 160)}. `}Expires ${time(expires_at, here)}</p>
${gist(gate)}
${dryRun(dryRunOf(question))}
${effect(gate)}
${answer}
<h3>Exact call</h3><pre class="payload" tabindex="0" aria-label="Exact call">${shown(call.tool)}\n${lines.map((line) => html`${shown(line)}\n`)}</pre>
<details><summary>Arguments as sent, digit for digit</summary><pre class="payload" tabindex="0" aria-label="Arguments as sent">${shown(args)}</pre></details>
<details><summary>Sources and the whole question, as signed</summary>${sources(question)}<pre class="whole" tabindex="0" aria-label="Whole question">${shown(question)}</pre><p class="dim">call <code>${call.call_sha256}</code><br>question <code>${displayed_sha256}</code></p></details>
</section>`;
}

/** The passkeys that pages of this address can use, shared by requests of the same moment. */
export const passkeysOf = ({ backend, origin, reads }: RequestContext): Promise<readonly OfferedPasskey[]> =>
  reads.read(`${backend.user} passkeys ${origin}`, () => passkeysAt(backend, origin));

/** @param back the path below the base that follows an answer */
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
