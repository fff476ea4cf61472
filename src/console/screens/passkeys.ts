/** Passkeys: those of the person, making one for this address, and ending one. */
import { html } from 'hono/html';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import type { Passkey } from '../../wire/passkey.ts';
import { csrfField, empty, type Page } from '../page.ts';
import { askedUntil, madePasskey, passkeyToMake, whyNotAt } from '../passkeys.ts';
import { type Html, NOTHING, shown } from '../shown.ts';
import { type Here, time } from '../times.ts';
import { field, type Redirect, type JsonAnswer, there, type RequestContext } from '../request-context.ts';
import { passphraseField } from './question.ts';

type Row = {
  readonly approver: string;
  readonly name: string;
  readonly origin: string;
  readonly added?: string;
  readonly revoked?: string | undefined;
};

/** All of them where the roster can be asked for; else those that stand. */
async function rowsOf({ backend }: RequestContext): Promise<readonly Row[]> {
  if ('there' in backend.passkeys) {
    const all = await backend.passkeys.there.list();
    return all.map(({ approver, name, passkey, enrolled_at, revoked_at }) => ({
      ...{ approver, name, origin: passkey?.origin ?? '', added: enrolled_at, revoked: revoked_at },
    }));
  }
  return (await there(backend.intents).passkeys()).passkeys;
}

const isSealed = ({ backend }: RequestContext) => ('there' in backend.approver && backend.approver.there.known()?.isSealed) ?? false;

function row({ approver, name, origin, added, revoked }: Row, here: Here, mayEnd: boolean): Html {
  const state =
    revoked === undefined
      ? html`<span class="state good">stands</span>`
      : html`<span class="state failed">revoked</span> ${time(revoked, here)}`;
  const end =
    mayEnd && revoked === undefined
      ? html`<a class="button" href="approvals/passkeys/${approver}/revoke">Revoke</a>`
      : NOTHING;
  const when = added === undefined ? NOTHING : html`added ${time(added, here)}`;
  return html`<li class="row" data-row><span class="name">${shown(name)}</span><span class="dim">${shown(origin)} ${when}</span><span>${state} ${end}</span></li>`;
}

function addForm(context: RequestContext): Html {
  const { session, origin, backend } = context;
  const whyNot = whyNotAt(backend, origin);
  if (whyNot !== undefined) return html`<p class="notice">${shown(whyNot)}</p>`;
  const key = 'there' in backend.approver ? backend.approver.there.known() : undefined;
  const vouches =
    'there' in backend.passkeys && key
      ? html`The key of this computer, <code>${key.publicKey.slice(0, 16)}…</code>, vouches for it.`
      : html`You get a request that your key has to vouch for, on the computer where it is.`;
  return html`<form method="post" action="approvals/passkeys" class="stack" data-passkey="approvals/passkeys/make">${csrfField(session.csrf)}
<div class="field"><label for="name">What it is called</label><input id="name" name="name" required maxlength="60" value="a passkey for ${new URL(origin).host}" autocomplete="off"></div>
${'there' in backend.passkeys ? passphraseField(isSealed(context), 'new') : NOTHING}
<p class="notice bad" role="alert" data-error hidden></p>
<div class="actions"><button class="primary">Add a passkey</button></div>
<p class="hint">Your browser asks where to keep it: in this computer, your phone, or a security key. It answers for this address alone, ${shown(origin)}. ${vouches}</p>
<noscript><p class="notice">Adding a passkey needs script.</p></noscript></form>`;
}

/** `approvals/passkeys`. */
export async function passkeysScreen(context: RequestContext): Promise<Page> {
  const { here, backend } = context;
  const rows = await rowsOf(context);
  const list =
    rows.length === 0
      ? empty(
          'No passkey yet',
          html`With one, an answer takes your finger, your face or a PIN, and its receipt shows it. Without one, the key of the computer that serves this page signs.`,
        )
      : html`<ul class="rows intents">${rows.map((one) => row(one, here, 'there' in backend.passkeys))}</ul>`;
  const main = html`<p class="back"><a href="approvals">All approvals</a></p><h1>Passkeys</h1>${list}<h2>Another one</h2>${addForm(context)}`;
  return { screen: 'approvals', title: 'Passkeys', main };
}

const nameIn = (context: RequestContext): string => {
  const name = field(context, 'name');
  if (name !== undefined && name.length <= 60) return name;
  throw new ReveilleError('invalid_request', 'name must have 1 to 60 characters: what the passkey is called');
};

/** `approvals/passkeys/make`, sent by the script: what the browser has to make. */
export async function makePasskey(context: RequestContext): Promise<JsonAnswer> {
  const { session, origin, backend, clock, form } = context;
  const whyNot = whyNotAt(backend, origin);
  if (whyNot !== undefined) return { json: { complaint: whyNot } };
  try {
    // Before the browser makes one that nobody vouches for.
    if ('there' in backend.passkeys) await backend.passkeys.there.opens(form.get('passphrase') ?? undefined);
    const { passkeys } = await there(backend.intents).passkeys();
    const known = passkeys.filter((one) => one.origin === origin);
    const about = { origin, user: backend.user, name: nameIn(context), known, now: clock.now() };
    return { json: passkeyToMake(session.messages, about) };
  } catch (thrown) {
    return { json: { complaint: `Nothing was added: ${sentenceOf(thrown)}` } };
  }
}

/** @throws what is nobody's mistake */
function sentenceOf(thrown: unknown): string {
  const { code, message } = toReveilleError(thrown);
  if (code === 'internal') throw thrown;
  return message;
}

/** `approvals/passkeys`, sent: what the browser has made is let in, on the word of the approver's key of this side. */
export async function addPasskey(context: RequestContext): Promise<Page | Redirect> {
  const { session, origin, backend, clock, form } = context;
  const back = { to: 'approvals/passkeys' };
  let passkey: Passkey;
  const name = nameIn(context);
  try {
    if (!form.has('credential_id'))
      throw new ReveilleError('invalid_request', 'adding a passkey needs script, and a browser that has them');
    passkey = madePasskey(session.messages, form, origin, clock.now());
    if ('there' in backend.passkeys) {
      await backend.passkeys.there.enroll({ passkey, name }, form.get('passphrase') ?? undefined);
      session.messages.success(`Added: “${name}” may answer from ${origin}.`);
      return back;
    }
  } catch (thrown) {
    session.messages.error(`Nothing was added: ${sentenceOf(thrown)}`);
    return back;
  }
  const { executor } = await there(backend.intents).passkeys();
  const expires_at = askedUntil(clock.now());
  const request = JSON.stringify({ request: { passkey, name, user: backend.user, executor, expires_at } });
  const main = html`<p class="back"><a href="approvals/passkeys">Passkeys</a></p><h1>Vouch for it</h1>
<p>It was made. It answers nothing until your key has vouched for it: within 15 minutes, put this into a file on the computer where your key is, and run there</p>
<p><code class="command">reveille approver enroll --request-file request.json</code></p>
<pre class="whole" tabindex="0" aria-label="The request">${shown(request)}</pre>`;
  return { screen: 'approvals', title: 'Passkeys', main };
}

async function meant(context: RequestContext): Promise<Row> {
  const found = (await rowsOf(context)).find(({ approver }) => approver === context.params.id);
  if (found) return found;
  throw new ReveilleError('not_found', 'there is no such passkey');
}

/** `approvals/passkeys/{id}/revoke`: asks before what cannot be undone. */
export async function askRevoke(context: RequestContext): Promise<Page> {
  const { approver, name, origin } = await meant(context);
  const main = html`<p class="back"><a href="approvals/passkeys">Passkeys</a></p><h1>Revoke this passkey?</h1>
<p>“${shown(name)}” for ${shown(origin)} will answer nothing any more, and cannot come back. What it has approved and was not carried out is asked for anew.</p>
<form method="post" action="approvals/passkeys/${approver}/revoke">${csrfField(context.session.csrf)}${passphraseField(isSealed(context), 'revoke')}
<div class="actions"><button class="danger">Revoke it</button><a class="button" href="approvals/passkeys">Keep it</a></div></form>`;
  return { screen: 'approvals', title: 'Revoke a passkey', main };
}

/** `approvals/passkeys/{id}/revoke`, sent. */
export async function revokePasskey(context: RequestContext): Promise<Redirect> {
  const { backend, form, session } = context;
  const { approver, name } = await meant(context);
  try {
    await there(backend.passkeys).revoke(approver, form.get('passphrase') ?? undefined);
    session.messages.success(`Revoked: “${name}” answers nothing any more.`);
  } catch (thrown) {
    session.messages.error(`Nothing was revoked: ${sentenceOf(thrown)}`);
  }
  return { to: 'approvals/passkeys' };
}
