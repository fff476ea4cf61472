/** Passkeys: the list of the user, a new one for this address, and revocation. */
import { html } from 'hono/html';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import type { Passkey } from '../../wire/passkey.ts';
import { csrfField, empty, type Page, pageHead } from '../page.ts';
import { madePasskey, passkeyToMake, requestExpiry, whyNotAt } from '../passkeys.ts';
import { field, type JsonAnswer, type Redirect, type RequestContext, there } from '../request-context.ts';
import { type Html, NOTHING, shown } from '../shown.ts';
import { type LocalContext, time } from '../times.ts';
import { passphraseField } from './question.ts';

type Row = {
  readonly approver: string;
  readonly name: string;
  readonly origin: string;
  readonly added?: string;
  readonly revoked?: string | undefined;
};

/** All passkeys if the roster is available; otherwise the valid ones. */
async function rowsOf({ backend }: RequestContext): Promise<readonly Row[]> {
  if ('there' in backend.passkeys) {
    const all = await backend.passkeys.there.list();
    return all.map(({ approver, name, passkey, enrolled_at, revoked_at }) => ({
      ...{ approver, name, origin: passkey?.origin ?? '', added: enrolled_at, revoked: revoked_at },
    }));
  }
  return (await there(backend.intents).passkeys()).passkeys;
}

const isSealed = ({ backend }: RequestContext) =>
  ('there' in backend.approver && backend.approver.there.known()?.isSealed) ?? false;

function row({ approver, name, origin, added, revoked }: Row, here: LocalContext, mayRevoke: boolean): Html {
  const state =
    revoked === undefined
      ? html`<span class="state good">valid</span>`
      : html`<span class="state failed">revoked</span>`;
  const revoke =
    mayRevoke && revoked === undefined
      ? html`<a class="button" href="approvals/passkeys/${approver}/revoke">Revoke</a>`
      : NOTHING;
  const when =
    revoked === undefined
      ? added === undefined
        ? NOTHING
        : html`added ${time(added, here)}`
      : html`revoked ${time(revoked, here)}`;
  return html`<li class="row" data-row><span class="name">${shown(name)}<small>${shown(origin)}</small></span><span class="when dim">${when}</span>${state}<span>${revoke}</span></li>`;
}

function addForm(context: RequestContext): Html {
  const { session, origin, backend } = context;
  const whyNot = whyNotAt(backend, origin);
  if (whyNot !== undefined) return html`<p class="notice">${shown(whyNot)}</p>`;
  const key = 'there' in backend.approver ? backend.approver.there.known() : undefined;
  const signs =
    'there' in backend.passkeys && key
      ? html`The key of this computer, <code>${key.publicKey.slice(0, 16)}…</code>, signs its enrolment.`
      : html`You then get a request, which your key signs on the computer where it is stored.`;
  return html`<form method="post" action="approvals/passkeys" class="stack" data-passkey="approvals/passkeys/make">${csrfField(session.csrf)}
<div class="field"><label for="name">Name</label><input id="name" name="name" required maxlength="60" value="passkey for ${new URL(origin).host}" autocomplete="off"></div>
${'there' in backend.passkeys ? passphraseField(isSealed(context), 'new') : NOTHING}
<p class="notice bad" role="alert" data-error hidden></p>
<div class="actions"><button class="primary">Add a passkey</button></div>
<p class="hint">Your browser asks where to store it: on this computer, a phone or a security key. It is valid for this address only, ${shown(origin)}. ${signs}</p>
<noscript><p class="notice">Adding a passkey needs JavaScript.</p></noscript></form>`;
}

/** `approvals/passkeys`. */
export async function passkeysScreen(context: RequestContext): Promise<Page> {
  const { here, backend } = context;
  const rows = await rowsOf(context);
  const list =
    rows.length === 0
      ? empty(
          'No passkeys',
          html`With a passkey, you confirm an answer with a fingerprint, your face or a PIN. Without one, the key of the computer that serves this page signs.`,
        )
      : html`<ul class="rows passkeys">${rows.map((one) => row(one, here, 'there' in backend.passkeys))}</ul>`;
  const main = html`<p class="back"><a href="approvals">Approvals</a></p>${pageHead('Passkeys')}${list}<h2>Add a passkey</h2>${addForm(context)}`;
  return { screen: 'approvals', title: 'Passkeys', main };
}

const nameIn = (context: RequestContext): string => {
  const name = field(context, 'name');
  if (name !== undefined && name.length <= 60) return name;
  throw new ReveilleError('invalid_request', 'name must have 1 to 60 characters');
};

/** `POST approvals/passkeys/make`, by the script: the options of the new passkey. */
export async function makePasskey(context: RequestContext): Promise<JsonAnswer> {
  const { session, origin, backend, clock, form } = context;
  const whyNot = whyNotAt(backend, origin);
  if (whyNot !== undefined) return { json: { complaint: whyNot } };
  try {
    // Checks the passphrase before the browser creates a passkey that could not be enrolled.
    if ('there' in backend.passkeys) await backend.passkeys.there.opens(form.get('passphrase') ?? undefined);
    const { passkeys } = await there(backend.intents).passkeys();
    const known = passkeys.filter((one) => one.origin === origin);
    const about = { origin, user: backend.user, name: nameIn(context), known, now: clock.now() };
    return { json: passkeyToMake(session.messages, about) };
  } catch (thrown) {
    return { json: { complaint: `The passkey was not added: ${sentenceOf(thrown)}` } };
  }
}

/** @throws internal errors */
function sentenceOf(thrown: unknown): string {
  const { code, message } = toReveilleError(thrown);
  if (code === 'internal') throw thrown;
  return message;
}

/** `POST approvals/passkeys`: enrols the new passkey, signed with the approver key of this computer. */
export async function addPasskey(context: RequestContext): Promise<Page | Redirect> {
  const { session, origin, backend, clock, form } = context;
  const back = { to: 'approvals/passkeys' };
  let passkey: Passkey;
  const name = nameIn(context);
  try {
    if (!form.has('credential_id'))
      throw new ReveilleError(
        'invalid_request',
        'adding a passkey needs JavaScript and a browser that supports passkeys',
      );
    passkey = madePasskey(session.messages, form, origin, clock.now());
    if ('there' in backend.passkeys) {
      await backend.passkeys.there.enroll({ passkey, name }, form.get('passphrase') ?? undefined);
      session.messages.success(`Added: “${name}” may answer from ${origin}.`);
      return back;
    }
  } catch (thrown) {
    session.messages.error(`The passkey was not added: ${sentenceOf(thrown)}`);
    return back;
  }
  const { executor } = await there(backend.intents).passkeys();
  const expires_at = requestExpiry(clock.now());
  const request = JSON.stringify({ request: { passkey, name, user: backend.user, executor, expires_at } });
  const main = html`<p class="back"><a href="approvals/passkeys">Passkeys</a></p><h1>Sign the enrolment</h1>
<p>The passkey exists, but it cannot answer yet. Within 15 minutes, save this request to a file on the computer that has your key, and run there:</p>
<p><code class="command">reveille approver enroll --request-file request.json</code></p>
<pre class="whole" tabindex="0" aria-label="The request">${shown(request)}</pre>`;
  return { screen: 'approvals', title: 'Passkeys', main };
}

async function passkeyOf(context: RequestContext): Promise<Row> {
  const found = (await rowsOf(context)).find(({ approver }) => approver === context.params.id);
  if (found) return found;
  throw new ReveilleError('not_found', 'there is no passkey with this id');
}

/** `approvals/passkeys/{id}/revoke`: the confirmation. */
export async function confirmRevoke(context: RequestContext): Promise<Page> {
  const { approver, name, origin } = await passkeyOf(context);
  const main = html`<p class="back"><a href="approvals/passkeys">Passkeys</a></p><h1>Revoke this passkey?</h1>
<p>“${shown(name)}” for ${shown(origin)} cannot answer any more, and cannot be restored. Approved calls that have not run yet are asked again.</p>
<form method="post" action="approvals/passkeys/${approver}/revoke">${csrfField(context.session.csrf)}${passphraseField(isSealed(context), 'revoke')}
<div class="actions"><button class="danger">Revoke</button><a class="button" href="approvals/passkeys">Cancel</a></div></form>`;
  return { screen: 'approvals', title: 'Revoke a passkey', main };
}

/** `POST approvals/passkeys/{id}/revoke`. */
export async function revokePasskey(context: RequestContext): Promise<Redirect> {
  const { backend, form, session } = context;
  const { approver, name } = await passkeyOf(context);
  try {
    await there(backend.passkeys).revoke(approver, form.get('passphrase') ?? undefined);
    session.messages.success(`Revoked: “${name}” cannot answer any more.`);
  } catch (thrown) {
    session.messages.error(`The passkey was not revoked: ${sentenceOf(thrown)}`);
  }
  return { to: 'approvals/passkeys' };
}
