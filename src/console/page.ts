/**
 * The frame of every page: head, navigation, one-time messages and files. It contains no inline script and no inline
 * style.
 */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { html, raw } from 'hono/html';
import type { ConsoleBackend } from './backend.ts';
import { HEADERS } from './request-guard.ts';
import type { FlashMessage, Session } from './sessions.ts';
import { type Html, NOTHING } from './shown.ts';
import { type LocalContext, zoneText } from './times.ts';

export const SCREENS = [
  {
    ...{ name: 'upcoming', title: 'Upcoming', key: 'u' },
    icon: '<rect x="4" y="5" width="16" height="15" rx="2"/><path d="M4 10h16M8 3v4M16 3v4"/>',
  },
  {
    ...{ name: 'alarms', title: 'Alarms', key: 'a' },
    icon: '<circle cx="12" cy="13" r="7"/><path d="M12 9.5V13l2.5 1.5M4.5 5.5 7 3.5M19.5 5.5 17 3.5"/>',
  },
  {
    ...{ name: 'chat', title: 'Chat', key: 'c' },
    icon: '<path d="M5 5h14a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1h-7l-4.5 4v-4H5a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1z"/>',
  },
  {
    ...{ name: 'approvals', title: 'Approvals', key: 'p' },
    icon: '<path d="M12 3.5 5 6v5.5c0 4.3 2.9 7.6 7 9 4.1-1.4 7-4.7 7-9V6z"/><path d="m9 12 2.2 2.2 4-4.2"/>',
  },
  {
    ...{ name: 'machine', title: 'Machine', key: 'm' },
    icon: '<rect x="4" y="4.5" width="16" height="6.5" rx="1.5"/><rect x="4" y="13" width="16" height="6.5" rx="1.5"/><path d="M7.5 7.75h.01M7.5 16.25h.01"/>',
  },
  {
    ...{ name: 'day', title: 'Day', key: 'd' },
    icon: '<circle cx="12" cy="12" r="4"/><path d="M12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6 7 7M17 17l1.4 1.4M5.6 18.4 7 17M17 7l1.4-1.4"/>',
  },
  { ...{ name: 'status', title: 'Status', key: 's' }, icon: '<path d="M3 12h4l3-7 4 14 3-7h4"/>' },
] as const;
export type ScreenName = (typeof SCREENS)[number]['name'];

export type Page = {
  readonly screen: ScreenName;
  readonly title: string;
  readonly main: Html;
  /** Hints after which an open page is fetched again. Without them it never is; nor is the answer to a form. */
  readonly looksAt?: readonly string[];
  /** `fixed` fills the window and scrolls inside; a chat has its input at the bottom. */
  readonly layout?: 'flow' | 'fixed';
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

/** The hidden field that every form of a session sends. */
export const csrfField = (csrf: string): Html => html`<input type="hidden" name="csrf" value="${csrf}">`;

/** A drawing of 24 × 24 units that says nothing beyond the text beside it. */
export const icon = (paths: string): Html =>
  html`<svg class="icon" viewBox="0 0 24 24" width="20" height="20" aria-hidden="true">${raw(paths)}</svg>`;

function messageLine(message: FlashMessage | undefined, session: Session): Html {
  if (message === undefined) return NOTHING;
  const undo =
    message.undo === undefined
      ? NOTHING
      : html`<form method="post" action="undo" class="inline">${csrfField(session.csrf)}<input type="hidden" name="step" value="${message.undo}"><button data-key="z">Undo</button></form>`;
  return html`<div class="notice ${message.tone}" role="status"><span>${message.text}</span>${undo}</div>`;
}

/** The parts of a page around its screen. */
export type Frame = {
  readonly backend: ConsoleBackend;
  readonly session: Session;
  readonly here: LocalContext;
  readonly assets: Assets;
  readonly message: FlashMessage | undefined;
  /** Number of waiting questions; `undefined` when it is not known. */
  readonly waiting: number | undefined;
  /** The path of the page itself, below the base. */
  readonly path: string;
};

const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ...SCREENS.map(({ key, title }) => [`g ${key}`, `go to ${title}`] as const),
  ['/', 'search, or the first field'],
  ['n', 'new alarm'],
  ['j  k', 'next, previous in a list'],
  ['Enter', 'open'],
  ['x', 'select'],
  ['e', 'edit'],
  ['z', 'undo'],
  ['y', 'approve an open question'],
  ['d', 'deny it'],
  ['s', 'stop the running turn'],
  ['?', 'keyboard shortcuts'],
  ['Esc', 'close, or leave a field'],
];

const keysDialog = (): Html => html`<dialog id="keys" aria-labelledby="keys-title">
<h2 id="keys-title">Keyboard shortcuts</h2>
<dl class="keys">${KEYS.map(([keys, what]) => html`<div><dt><kbd>${keys}</kbd></dt><dd>${what}</dd></div>`)}</dl>
<form method="dialog"><button autofocus>Close</button></form>
</dialog>`;

/** The changing part of a page; a hint fetches it again. */
export const mainOf = ({ main, looksAt = [], layout = 'flow' }: Page): Html =>
  html`<main id="main" tabindex="-1" class="${layout}" data-looks-at="${looksAt.join(' ')}">${main}</main>`;

/** The title of a screen, a line about it, and its main actions at the right. */
export const pageHead = (title: Html | string, note: Html | string = NOTHING, actions: Html = NOTHING): Html =>
  html`<div class="page-head"><div><h1>${title}</h1>${note === NOTHING ? NOTHING : html`<p class="dim">${note}</p>`}</div>${actions === NOTHING ? NOTHING : html`<div class="actions">${actions}</div>`}</div>`;

/** The number of waiting questions, for the navigation. */
export const waitingMark = (waiting: number | undefined): Html =>
  waiting ? html` <span class="count">${waiting}<span class="sr"> waiting</span></span>` : NOTHING;

export function wholePage(page: Page, { backend, session, here, assets, message, waiting, path }: Frame): Html {
  const links = SCREENS.map(({ name, title, key, icon: paths }) => {
    const count = name === 'approvals' ? html`<span data-waiting>${waitingMark(waiting)}</span>` : NOTHING;
    return html`<li><a href="${name}" data-go="${key}"${name === page.screen ? raw(' aria-current="page"') : ''}>${icon(paths)}<span class="label">${title}</span>${count}</a></li>`;
  });
  return html`${DOCTYPE}<html lang="en">
<head>
${head(page.title, session.base, assets)}
<link rel="manifest" href="/manifest.webmanifest">
<script src="${assets.morph}" defer></script>
<script src="${assets.script}" defer></script>
</head>
<body class="${page.layout ?? 'flow'}" data-csrf="${session.csrf}">
<a class="skip" href="${path}#main">Skip to content</a>
<header class="top"><div class="bar">
<a class="brand" href="upcoming" aria-label="Reveille, Upcoming">${icon(SCREENS[1].icon)}<span>Reveille</span></a>
<nav aria-label="Screens"><ul>${links}</ul></nav>
<p class="zone"><span>${zoneText(here)}</span><span class="live" data-state="off" role="img" aria-label="no live updates"></span></p>
</div></header>
${messageLine(message, session)}
${mainOf(page)}
<footer class="foot"><div class="bar"><p>${backend.name}</p>
<nav aria-label="More"><a href="notifications">Notifications</a><a href="approvals/passkeys">Passkeys</a><a href="clients">Clients</a></nav>
<button type="button" class="plain" data-opens="keys" hidden>Keyboard shortcuts <kbd>?</kbd></button>
<form method="post" action="sign-out">${csrfField(session.csrf)}<button class="plain">Sign out</button></form></div></footer>
${keysDialog()}
</body>
</html>`;
}

export function outsidePage(title: string, main: Html, assets: Assets, refresh?: string): Html {
  return html`${DOCTYPE}<html lang="en">
<head>
${head(title, '/', assets)}
${refresh === undefined ? NOTHING : html`<meta http-equiv="refresh" content="0; url=${refresh}">`}
<script src="${assets.script}" defer></script>
</head>
<body class="flow"${refresh === undefined ? '' : raw(' data-leads-on="yes"')}>
<header class="top"><div class="bar"><span class="brand">${icon(SCREENS[1].icon)}<span>Reveille</span></span></div></header>
<main id="main" class="flow">${main}</main>
</body>
</html>`;
}

/** A part that is not available, with the remedy. */
export const missing = (what: string, why: string): Html =>
  html`<section class="empty"><h2>${what}</h2><p>${why}</p></section>`;

/** An empty state with the next step. */
export const empty = (title: string, next: Html): Html =>
  html`<section class="empty"><h2>${title}</h2><p>${next}</p></section>`;

// Files of the console: style sheet, scripts and icon. Their names contain a digest, so browsers cache them forever.

const FOLDER = join(import.meta.dirname, 'assets');
const require = createRequire(import.meta.url);
const FILES = {
  css: { file: 'console.css', type: 'text/css; charset=utf-8' },
  script: { file: 'console.js', type: 'text/javascript; charset=utf-8' },
  // Applies the differences of a new page to an open one: https://github.com/bigskysoftware/idiomorph
  morph: { file: 'idiomorph.min.js', type: 'text/javascript; charset=utf-8' },
  push: { file: 'push.js', type: 'text/javascript; charset=utf-8' },
  worker: { file: 'worker.js', type: 'text/javascript; charset=utf-8' },
  icon: { file: 'icon.svg', type: 'image/svg+xml' },
  manifest: { file: 'manifest.webmanifest', type: 'application/manifest+json' },
} as const;

type LoadedAssets = Assets & { serve(name: string): Response | undefined };

export function loadAssets(): LoadedAssets {
  const loaded = Object.values(FILES).map(({ file, type }) => {
    const path = file === 'idiomorph.min.js' ? require.resolve('idiomorph/dist/idiomorph.min.js') : join(FOLDER, file);
    const text = readFileSync(path, 'utf8');
    return { file, type, text, name: file.replace('.', `.${hash('sha256', text).slice(0, 12)}.`) };
  });
  const addressOf = (file: string) => `/assets/${loaded.find((one) => one.file === file)!.name}`;
  return {
    css: addressOf('console.css'),
    script: addressOf('console.js'),
    morph: addressOf('idiomorph.min.js'),
    icon: addressOf('icon.svg'),
    serve(name) {
      const found = loaded.find((one) => one.name === name || one.file === name);
      if (!found) return undefined;
      const kept = found.name === name ? 'public, max-age=31536000, immutable' : 'no-cache';
      return new Response(found.text, {
        headers: { ...HEADERS, 'content-type': found.type, 'cache-control': kept },
      });
    },
  };
}
