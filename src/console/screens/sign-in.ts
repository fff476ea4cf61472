/** Pages for whoever is not in, and for what went wrong. */
import { html } from 'hono/html';
import type { ReveilleError } from '../../wire/errors.ts';
import { HINTS } from '../desk.ts';
import { type Assets, outsidePage, type Page, SCREENS } from '../page.ts';
import { type Html, NOTHING, shown } from '../shown.ts';
import type { RequestContext } from '../request-context.ts';

/** @param byToken whether a person's token opens it */
export function signInPage(given: { assets: Assets; complaint: string | undefined; byToken: boolean }): Html {
  const { assets, complaint, byToken } = given;
  const form = html`<form method="post" action="/sign-in" class="stack">
<label for="token">Your token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<p class="hint">Whoever runs this makes one for you, with <code>reveille user token</code>. It is not kept here.</p>
<label for="zone">Your time zone</label>
<input id="zone" name="zone" autocomplete="off" placeholder="Europe/Berlin" data-zone>
<button class="primary">Sign in</button>
</form>
<p class="hint">Or from a terminal that has the token: <code>reveille open --url</code> with this address.</p>`;
  const local = html`<p>Open it from a terminal on this computer:</p>
<p><code class="command">reveille open</code></p>
<p class="hint">That makes an address that works once. <code>reveille open --print</code> prints it, for a shell elsewhere.</p>`;
  return outsidePage(
    'Sign in',
    html`<section class="empty" data-way-in="yes"><h1>The console is closed</h1>
${complaint === undefined ? NOTHING : html`<p class="notice bad" role="alert">${complaint}</p>`}
${byToken ? form : local}</section>`,
    assets,
  );
}

/** Leads on to a session that has just been opened. */
export const openedPage = (base: string, assets: Assets): Html =>
  outsidePage(
    'Opening',
    html`<p><a id="onward" href="${base}ahead">Go on to the console</a></p>`,
    assets,
    `${base}ahead`,
  );

/** What went wrong where nobody is known to be in. */
export const errorPage = ({ message }: ReveilleError, assets: Assets): Html =>
  outsidePage(
    'That did not work',
    html`<section class="empty"><h1>That did not work</h1><p role="alert">${shown(message)}</p></section>`,
    assets,
  );

/** What went wrong, in the frame of the page that was asked for. */
export function errorMain({ code, message, retryable, status }: ReveilleError, { path }: Pick<RequestContext, 'path'>): Page {
  const screen = SCREENS.find(({ name }) => path.startsWith(name))?.name ?? 'ahead';
  const title = code === 'not_found' ? 'Not here' : 'That did not work';
  return {
    ...{ screen, title },
    // A part that was out of reach is shown as soon as it answers.
    looksAt: status >= 500 ? HINTS : [],
    main: html`<section class="empty"><h1>${title}</h1><p role="alert">${shown(message)}</p>
<p>${retryable ? html`It may work in a moment. ` : NOTHING}<a href="${screen}">Go to ${SCREENS.find(({ name }) => name === screen)!.title}</a></p></section>`,
  };
}
