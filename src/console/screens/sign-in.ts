/** Sign-in and error pages. */
import { html } from 'hono/html';
import type { ReveilleError } from '../../wire/errors.ts';
import { HINTS } from '../backend.ts';
import { type Assets, outsidePage, type Page, SCREENS } from '../page.ts';
import type { RequestContext } from '../request-context.ts';
import { type Html, NOTHING, shown } from '../shown.ts';

/** @param given.byToken whether a user token signs in */
export function signInPage(given: { assets: Assets; complaint: string | undefined; byToken: boolean }): Html {
  const { assets, complaint, byToken } = given;
  const form = html`<form method="post" action="/sign-in" class="stack">
<div class="field"><label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus aria-describedby="token-hint">
<p class="hint" id="token-hint">The operator creates it with <code>reveille user token</code>. The browser does not store it.</p></div>
<div class="field"><label for="zone">Time zone</label>
<input id="zone" name="zone" autocomplete="off" placeholder="Europe/Berlin" data-zone></div>
<button class="primary">Sign in</button>
</form>
<p class="hint">In a terminal that has the token: <code>reveille open --url</code> with this address.</p>`;
  const local = html`<p>Open the console from a terminal on this computer:</p>
<p><code class="command">reveille open</code></p>
<p class="hint">The command creates an address that works once. <code>reveille open --print</code> prints it.</p>`;
  return outsidePage(
    'Sign in',
    html`<section class="empty outside" data-sign-in="yes"><h1>Sign in</h1>
${complaint === undefined ? NOTHING : html`<p class="notice bad" role="alert">${complaint}</p>`}
${byToken ? form : local}</section>`,
    assets,
  );
}

/** Leads to a new session. */
export const openedPage = (base: string, assets: Assets): Html =>
  outsidePage(
    'Opening',
    html`<p><a id="onward" href="${base}upcoming">Continue to the console</a></p>`,
    assets,
    `${base}upcoming`,
  );

export const errorPage = ({ message }: ReveilleError, assets: Assets): Html =>
  outsidePage(
    'Error',
    html`<section class="empty outside"><h1>Error</h1><p role="alert">${shown(message)}</p></section>`,
    assets,
  );

/** An error in the frame of the requested page. */
export function errorMain(
  { code, message, retryable, status }: ReveilleError,
  { path }: Pick<RequestContext, 'path'>,
): Page {
  const screen = SCREENS.find(({ name }) => path.startsWith(name))?.name ?? 'upcoming';
  const title = code === 'not_found' ? 'Not found' : 'Error';
  return {
    ...{ screen, title },
    // The page loads again as soon as the part answers.
    looksAt: status >= 500 ? HINTS : [],
    main: html`<section class="empty"><h1>${title}</h1><p role="alert">${shown(message)}</p>
<p>${retryable ? html`Try again in a moment. ` : NOTHING}<a href="${screen}">Go to ${SCREENS.find(({ name }) => name === screen)!.title}</a></p></section>`,
  };
}
