/** The frame of every page: head, navigation, what has to be said once. No script and no style stands in it. */
import { html, raw } from 'hono/html';
import type { Desk } from './desk.ts';
import type { Session } from './sessions.ts';
import { type Html, NOTHING } from './shown.ts';
import { type Here, zoneWords } from './times.ts';
import type { FlashMessage } from './session-messages.ts';

export const SCREENS = [
  { name: 'ahead', title: 'Ahead', key: 'h' },
  { name: 'alarms', title: 'Alarms', key: 'a' },
  { name: 'talk', title: 'Talk', key: 't' },
  { name: 'approvals', title: 'Approvals', key: 'p' },
  { name: 'machine', title: 'Machine', key: 'm' },
  { name: 'day', title: 'Day', key: 'd' },
  { name: 'health', title: 'Health', key: 'e' },
] as const;
export type ScreenName = (typeof SCREENS)[number]['name'];

export type Page = {
  readonly screen: ScreenName;
  readonly title: string;
  readonly main: Html;
  /** Hints after which an open page is fetched again. Without them it never is; nor is the answer to a form. */
  readonly looksAt?: readonly string[];
  /** Fills the width: a list beside its detail. */
  readonly isWide?: boolean;
  readonly status?: number;
};

/** Addresses of the console's files; each carries a digest of the file. */
export type Assets = { readonly css: string; readonly script: string; readonly morph: string; readonly icon: string };

const head = (title: string, base: string, assets: Assets): Html => html`<meta charset="utf-8">
<title>${title} · Reveille</title>
<base href="${base}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="${assets.icon}">
<link rel="stylesheet" href="${assets.css}">`;

const DOCTYPE = raw('<!doctype html>\n');

/** What every write of a page says; a placeholder, so that a part of a page is the same for all sessions. */
export const csrfField = (csrf: string): Html => html`<input type="hidden" name="csrf" value="${csrf}">`;

function messageLine(message: FlashMessage | undefined, session: Session): Html {
  if (message === undefined) return NOTHING;
  const undo =
    message.undo === undefined
      ? NOTHING
      : html`<form method="post" action="undo" class="inline">${csrfField(session.csrf)}<input type="hidden" name="step" value="${message.undo}"><button data-key="z">Undo</button></form>`;
  return html`<div class="notice ${message.tone}" role="status"><span>${message.text}</span>${undo}</div>`;
}

/** What stands in the navigation beside the names of screens. */
export type Frame = {
  readonly backend: Desk;
  readonly session: Session;
  readonly here: Here;
  readonly assets: Assets;
  readonly message: FlashMessage | undefined;
  /** How many questions wait; `undefined` where nobody knows. */
  readonly waiting: number | undefined;
  /** The path of the page itself, below the base. */
  readonly path: string;
};

const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ...SCREENS.map(({ key, title }) => [`g ${key}`, `go to ${title}`] as const),
  ['/', 'search, or the first field'],
  ['n', 'set an alarm'],
  ['j  k', 'next, previous in a list'],
  ['Enter', 'open it'],
  ['x', 'mark it'],
  ['e', 'edit it'],
  ['z', 'undo'],
  ['y', 'approve, where a question is open'],
  ['d', 'deny'],
  ['?', 'these keys'],
  ['Esc', 'close, or leave a field'],
];

const keysDialog = (): Html => html`<dialog id="keys" aria-labelledby="keys-title">
<h2 id="keys-title">Keys</h2>
<dl class="keys">${KEYS.map(([keys, what]) => html`<div><dt><kbd>${keys}</kbd></dt><dd>${what}</dd></div>`)}</dl>
<form method="dialog"><button autofocus>Close</button></form>
</dialog>`;

/** The changing part, as it is fetched anew when a hint comes. */
export const mainOf = ({ main, looksAt = [], isWide = false }: Page): Html =>
  html`<main id="main" tabindex="-1" class="${isWide ? 'wide' : 'narrow'}" data-looks-at="${looksAt.join(' ')}">${main}</main>`;

/** How many questions wait, beside the name of their screen; nothing where none does, or nobody knows. */
export const waitingMark = (waiting: number | undefined): Html =>
  waiting ? html` <span class="count">${waiting}<span class="sr"> waiting</span></span>` : NOTHING;

export function wholePage(page: Page, { backend, session, here, assets, message, waiting, path }: Frame): Html {
  const links = SCREENS.map(({ name, title, key }) => {
    const count = name === 'approvals' ? html`<span data-waiting>${waitingMark(waiting)}</span>` : NOTHING;
    return html`<li><a href="${name}" data-go="${key}"${name === page.screen ? raw(' aria-current="page"') : ''}>${title}${count}</a></li>`;
  });
  return html`${DOCTYPE}<html lang="en">
<head>
${head(page.title, session.base, assets)}
<link rel="manifest" href="/manifest.webmanifest">
<script src="${assets.morph}" defer></script>
<script src="${assets.script}" defer></script>
</head>
<body data-csrf="${session.csrf}">
<a class="skip" href="${path}#main">Skip to the content</a>
<header class="top">
<a class="brand" href="ahead" aria-label="Reveille, Ahead"><svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true"><circle cx="12" cy="13" r="8"/><path d="M12 8v5l3 2M4 5l3-3M20 5l-3-3"/></svg><span>Reveille</span></a>
<nav aria-label="Screens"><ul>${links}</ul></nav>
<p class="zone"><span class="live" data-state="off" role="img" aria-label="no live updates"></span><span>${zoneWords(here)}</span></p>
</header>
${messageLine(message, session)}
${mainOf(page)}
<footer class="foot"><p>${backend.name} · times in ${zoneWords(here)}</p><p><button type="button" class="plain" data-opens="keys" hidden>Keys <kbd>?</kbd></button></p>
<form method="post" action="sign-out">${csrfField(session.csrf)}<button class="plain">Sign out</button></form></footer>
${keysDialog()}
</body>
</html>`;
}

/** A page for whoever is not in. */
export function outsidePage(title: string, main: Html, assets: Assets, refresh?: string): Html {
  return html`${DOCTYPE}<html lang="en">
<head>
${head(title, '/', assets)}
${refresh === undefined ? NOTHING : html`<meta http-equiv="refresh" content="0; url=${refresh}">`}
<script src="${assets.script}" defer></script>
</head>
<body${refresh === undefined ? '' : raw(' data-leads-on="yes"')}>
<header class="top"><span class="brand"><span>Reveille</span></span></header>
<main id="main" class="narrow">${main}</main>
</body>
</html>`;
}

/** A part that is not there, with what to do. */
export const missing = (what: string, why: string): Html =>
  html`<section class="empty"><h2>${what}</h2><p>${why}</p></section>`;

/** What to do where there is nothing yet. */
export const empty = (title: string, next: Html): Html =>
  html`<section class="empty"><h2>${title}</h2><p>${next}</p></section>`;
