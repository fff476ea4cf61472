/** The pages of the authorization server, inside the console's page frame. They need no script. */
import { html, raw } from 'hono/html';
import { oneLine as shown } from '../kit/text/hidden-characters.ts';
import { isOptional, type RemoteScope } from '../wire/remote-caller.ts';
import type { Destination } from './client-metadata.ts';

export type Html = ReturnType<typeof html>;

/** The frame around the content of each page, and the headers of each page. */
export type PageLook = {
  /** @param leadsTo an address that the page opens immediately */
  page(title: string, main: Html, leadsTo?: string): Html | Promise<Html>;
  readonly headers: Readonly<Record<string, string>>;
};

/** The description of each scope for the user. */
export const SCOPE_TEXT: Readonly<Record<RemoteScope, string>> = {
  'alarms:read': 'See your alarms, with their messages',
  'alarms:write': 'Set, change and cancel alarms, which start your agent',
  'conversations:read':
    'Read what your agent answers in all conversations of alarms, not only for alarms of this client',
  'time:read': 'See and record your work sessions, and when you take breaks',
  'intents:read': 'See the tasks of your agent, and their results',
  'agent:ask': 'Send messages to your agent, which answers with its tools and its memory',
};

/** The client as the pages show it. */
export type ShownClient = {
  readonly id: string;
  /** The host of its metadata document; `undefined` for a client that registered itself. */
  readonly host: string | undefined;
  /** Its name, as the client gives it. */
  readonly name: string | undefined;
};

const NOTHING: Html = html``;

const named = ({ host, name }: ShownClient): Html =>
  html`<strong>${host === undefined ? 'An unknown client' : shown(host)}</strong>${name === undefined ? NOTHING : html`, which calls itself “${shown(name)}”,`}`;

export const noticePage = (title: string, text: string, tone: 'good' | 'bad'): Html =>
  html`<section class="empty outside"><h1>${title}</h1><p class="notice ${tone}" role="${tone === 'bad' ? 'alert' : 'status'}">${shown(text)}</p></section>`;

const complaintLine = (complaint: string | undefined): Html =>
  complaint === undefined ? NOTHING : html`<p class="notice bad" role="alert">${shown(complaint)}</p>`;

const hidden = (csrf: string): Html => html`<input type="hidden" name="csrf" value="${csrf}">`;

/** Asks for a one-time code or a token. There are no passwords. */
export function signInMain(given: {
  readonly action: string;
  readonly csrf: string;
  readonly client: ShownClient;
  readonly complaint: string | undefined;
}): Html {
  const { action, csrf, client, complaint } = given;
  return html`<section class="empty outside"><h1>Sign in</h1>
<p>${named(client)} asks for access to your Reveille. You decide on the next page.</p>
${complaintLine(complaint)}
<form method="post" action="${action}" class="stack">${hidden(csrf)}
<div class="field"><label for="credential">Code or token</label>
<input id="credential" name="credential" type="password" autocomplete="off" required autofocus aria-describedby="credential-hint">
<p class="hint" id="credential-hint">The address that <code>reveille open --print</code> prints on your computer, or your token from <code>reveille user token</code>.</p></div>
<div class="actions"><button class="primary" name="do" value="sign-in">Sign in</button><button name="do" value="deny" formnovalidate>Cancel</button></div>
</form></section>`;
}

export type ConsentParts = {
  readonly action: string;
  readonly csrf: string;
  readonly client: ShownClient;
  readonly user: string;
  readonly scopes: readonly RemoteScope[];
  /** `undefined` for a device. */
  readonly destination: Destination | undefined;
};

function destinationLine(destination: Destination | undefined): Html {
  if (destination === undefined)
    return html`<div><dt>Goes to</dt><dd>the device that shows the code. <strong>Allow it only if you started this on your own device</strong>, and not if another person sent you the code.</dd></div>`;
  const { host, isLocal } = destination;
  return isLocal
    ? html`<div><dt>Goes to</dt><dd><strong>a program on this computer</strong>, at <code>${shown(host)}</code>. Any program here can pretend to be this client: <strong>allow it only if you just started it</strong>.</dd></div>`
    : html`<div><dt>Goes to</dt><dd><strong>${shown(host)}</strong></dd></div>`;
}

export function consentMain({ action, csrf, client, user, scopes, destination }: ConsentParts): Html {
  const boxes = scopes.map(
    (scope) =>
      html`<div class="field check"><input type="checkbox" name="scope" value="${scope}" id="scope-${scope}"${isOptional(scope) ? NOTHING : raw(' checked')}><label for="scope-${scope}">${SCOPE_TEXT[scope]} <small><code>${scope}</code></small></label></div>`,
  );
  const origin =
    client.host === undefined
      ? html`<div><dt>Client</dt><dd>It registered itself, so its name is not verified. Its id is <code>${shown(client.id)}</code>.</dd></div>`
      : html`<div><dt>Client</dt><dd><code>${shown(client.id)}</code></dd></div>`;
  return html`<section class="empty outside"><h1>Allow access?</h1>
<p>${named(client)} asks for access to the Reveille of <strong>${shown(user)}</strong>.</p>
<dl class="facts">${origin}${destinationLine(destination)}</dl>
<form method="post" action="${action}" class="stack">${hidden(csrf)}
<fieldset><legend>It may then</legend>${boxes}</fieldset>
<div class="actions"><button class="primary" name="do" value="allow">Allow</button><button class="danger" name="do" value="deny">Deny</button></div>
<p class="hint">You can end this access at any time in the console, under Clients, or with <code>reveille client revoke</code>.</p>
</form></section>`;
}

/** Opens an address immediately. The link is for browsers that do not follow the header. */
export const continueMain = (to: string): Html =>
  html`<section class="empty outside"><p><a id="onward" href="${to}">Continue</a></p></section>`;

/** Asks for the code on the device. */
export function deviceMain(given: {
  readonly action: string;
  readonly xsrf: string;
  readonly code: string;
  readonly complaint: string | undefined;
}): Html {
  const { action, xsrf, code, complaint } = given;
  return html`<section class="empty outside"><h1>Connect a device</h1>
${complaintLine(complaint)}
<form method="post" action="${action}" class="stack"><input type="hidden" name="xsrf" value="${xsrf}">
<div class="field"><label for="user_code">Code on the device</label>
<input id="user_code" name="user_code" value="${code}" required${code === '' ? raw(' autofocus') : ''} maxlength="20" autocomplete="off" autocapitalize="characters" spellcheck="false" placeholder="XXXX-XXXX"></div>
<div class="actions"><button class="primary">Continue</button></div>
<p class="hint">Enter a code only if you started this on your own device. If another person sent you the code, that person gets access.</p>
</form></section>`;
}

/** Asks the user to compare the code with the device, before the sign-in. */
export function deviceConfirmMain(given: {
  readonly action: string;
  readonly xsrf: string;
  readonly code: string;
  readonly client: ShownClient;
}): Html {
  const { action, xsrf, code, client } = given;
  return html`<section class="empty outside"><h1>Is this the code on your device?</h1>
<p><code class="command">${shown(code)}</code></p>
<p>${named(client)} asks for access to your Reveille. You decide on the next page.</p>
<form method="post" action="${action}" class="stack"><input type="hidden" name="xsrf" value="${xsrf}"><input type="hidden" name="user_code" value="${code}">
<div class="actions"><button class="primary" name="confirm" value="yes">Yes, continue</button><button name="abort" value="yes">No</button></div>
</form></section>`;
}
